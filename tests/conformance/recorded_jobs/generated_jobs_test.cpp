// Generated jobs, whose true iteration time is known: every way of asking gives it, and what the
// job hangs on is what it was made to hang on.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/conformance/recorded_jobs/generated_job.hpp"
#include "tests/conformance/recorded_jobs/job_figures.hpp"
#include "tests/conformance/recorded_jobs/recorded_cases.hpp"
#include "tests/fault.hpp"

namespace bubblesim::testing {
namespace {

using namespace std::chrono_literals;

JobFigures figures_when_recorded(const GeneratedJob& job) {
  const TempFolder folder;
  return must(figures_of({"generated", write_files(job, folder.path())}));
}

/// A job, and the resource that it hangs on.
struct Case {
  const char* name;
  GeneratedJob job;
  double Sensitivities::*hangs_on;

  friend std::ostream& operator<<(std::ostream& out, const Case& info) { return out << info.name; }
};

class GeneratedJobs : public ::testing::TestWithParam<Case> {};

TEST_P(GeneratedJobs, have_their_true_iteration_time_whichever_way_they_are_asked) {
  const JobFigures figures = figures_when_recorded(GetParam().job);
  for (const BrokenRule& rule : broken_rules(figures)) ADD_FAILURE() << rule.text;
  const double expected = to_seconds(steady_iteration(GetParam().job));
  EXPECT_NEAR(to_seconds(figures.run), expected, kTimesAgreeWithin * expected);
  EXPECT_GT(figures.sensitivities.*GetParam().hangs_on, 0.8);
}

// Nothing that a recording holds before its first mark belongs to an iteration.
TEST_P(GeneratedJobs, are_the_same_without_the_idle_time_before_the_first_mark) {
  GeneratedJob job = GetParam().job;
  const JobFigures expected = figures_when_recorded(job);
  job.idle_before = 500ms;
  const JobFigures figures = figures_when_recorded(job);
  expect_same(figures, expected);
}

// 60 kernels of 100 us and a collective of 300 us an iteration, launched every 6 us.
GeneratedJob device_bound() { return {}; }

// The device does in 5 us what the host takes 60 us to launch.
GeneratedJob host_bound() {
  GeneratedJob job;
  job.kernel = 5us;
  job.think = 50us;
  job.call = 10us;
  job.all_reduce = 20us;
  return job;
}

GeneratedJob link_bound() {
  GeneratedJob job;
  job.kernel = 10us;
  job.all_reduce = 20ms;
  return job;
}

// The host loads data while the device is idle.
GeneratedJob waits_for_data() {
  GeneratedJob job;
  job.pause = 40ms;
  return job;
}

// 401 operations an iteration: the host is two and a half iterations ahead, held by the queue.
GeneratedJob queue_is_full() {
  GeneratedJob job;
  job.kernels = 400;
  job.kernel = 50us;
  job.synchronises = false;
  job.before_window = 6;
  job.iterations = 8;
  return job;
}

GeneratedJob warms_up() {
  GeneratedJob job = host_bound();
  job.warmups = 2;
  job.iterations = 8;
  return job;
}

GeneratedJob begins_in_a_wait() {
  GeneratedJob job;
  job.first_wait = 92ms;
  return job;
}

GeneratedJob one_rank(GeneratedJob job) {
  job.ranks = 1;
  return job;
}

INSTANTIATE_TEST_SUITE_P(
    all, GeneratedJobs,
    ::testing::Values(Case{"device_bound", device_bound(), &Sensitivities::kernels},
                      Case{"device_bound_alone", one_rank(device_bound()), &Sensitivities::kernels},
                      Case{"host_bound", host_bound(), &Sensitivities::host},
                      Case{"host_bound_alone", one_rank(host_bound()), &Sensitivities::host},
                      Case{"link_bound", link_bound(), &Sensitivities::link},
                      Case{"waits_for_data", waits_for_data(), &Sensitivities::host},
                      Case{"queue_is_full", queue_is_full(), &Sensitivities::kernels},
                      Case{"warms_up", warms_up(), &Sensitivities::host},
                      Case{"begins_in_a_wait", begins_in_a_wait(), &Sensitivities::kernels}),
    [](const auto& test) { return test.param.name; });

// One pass of a service that nobody marked. Its recording begins with a copy, and a wait for it
// that work from before the recording made long: the wait is in no pass.
TEST(GeneratedService, does_not_repeat_a_wait_for_what_came_before_its_recording) {
  GeneratedJob job;
  job.ranks = 1;
  job.iterations = 1;
  job.marks = false;
  job.first_wait = 10us;
  const JobFigures expected = figures_when_recorded(job);
  job.first_wait = 92ms;
  const JobFigures figures = figures_when_recorded(job);
  for (const BrokenRule& rule : broken_rules(figures)) ADD_FAILURE() << rule.text;
  EXPECT_NEAR(to_seconds(figures.run), to_seconds(expected.run), 20e-6);
  EXPECT_NEAR(figures.run_bubbles, expected.run_bubbles, kBubblesAgreeWithin);
}

}  // namespace
}  // namespace bubblesim::testing

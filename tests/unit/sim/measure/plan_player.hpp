// Plays plans on a fake GPU, without a gate. Host times are the same as in workload::ProgramRun.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "capture/replay/job_runner.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::measure {

using capture::HostClock, capture::HostTime;

/// The training job and every filler, which is client 1 and up in the order of the config.
inline Result<std::vector<PlannedJob>> job_plans(const run::LoadedRun& run,
                                                 const PlanSetup& setup) {
  std::vector<PlannedJob> jobs;
  BUBBLESIM_ASSIGN_OR_RETURN(PlannedJob training, training_plan(run, setup));
  jobs.push_back(std::move(training));
  for (std::size_t i = 0; i < run.config.fillers.size(); ++i) {
    const ClientId client{static_cast<std::uint32_t>(i + 1)};
    BUBBLESIM_ASSIGN_OR_RETURN(PlannedJob filler, filler_plan(run, i, client, setup));
    jobs.push_back(std::move(filler));
  }
  return jobs;
}

/// The outcome of one job.
struct Played {
  capture::JobRecord record;    ///< instants are since the common start
  std::string fault;            ///< of the device
  std::uint64_t in_flight = 0;  ///< at the end
};

struct PlayedJob {
  capture::JobPlan plan;
  Duration until = Duration::max();  ///< the job is stopped then
  bool dies = false;  ///< the device is dropped once everything is launched, not closed
};

inline void play_job(HostClock& clock, const std::string& gpu, const PlayedJob& job,
                     HostTime origin, Played& into) {
  auto device = capture::open_fake_device(gpu, clock, job.plan.client);
  ASSERT_TRUE(device) << device.error().text();
  capture::JobRunner runner(job.plan, {&clock, device->get(), nullptr, {}, {}});
  if (const auto ready = runner.prepare({}); !ready) {
    into.fault = ready.error().text();
    return;
  }
  if (job.dies) {
    clock.sleep_until(origin + std::chrono::microseconds{1});
    for (std::uint32_t op = 0; op < job.plan.program.ops.size(); ++op)
      (*device)->launch({op, 0, op + 1}, 1, 1.0, {});
    into.in_flight = (*device)->in_flight();
    return;
  }
  capture::Crew crew(clock);
  if (job.until < Duration::max()) {
    crew.start(capture::Turn::kControl, [&] {
      clock.sleep_until(origin + job.until);
      runner.request_stop();
    });
  }
  capture::ReplayEnd end = runner.run(origin);
  crew.wait();
  into.record = std::move(end.record);
  if (end.fault) into.fault = end.fault->text();
  into.in_flight = (*device)->in_flight();
}

/// Plays all jobs at once on a GPU of this kind, under this sharing. It always terminates: close()
/// gives up a device that does not answer.
[[nodiscard]] inline std::vector<Played> play(const hardware::GpuSpec& spec,
                                              const std::vector<PlayedJob>& jobs,
                                              const policy::Sharing& sharing = {},
                                              const std::vector<policy::ClientSharing>& shares = {},
                                              const FakeGpuFaults& faults = {}) {
  std::vector<Played> results(jobs.size());
  auto made = capture::make_turn_clock();
  EXPECT_TRUE(made);
  HostClock& clock = **made;
  const auto part = clock.join(capture::Turn::kControl);
  capture::RigSetup setup;
  setup.sharing = sharing;
  setup.shares = shares;
  setup.shares.resize(std::max<std::size_t>(jobs.size(), 2));  // clients 0 and 1
  for (const PlayedJob& job : jobs) setup.jobs.push_back(job.plan);
  const capture::testing::RunningGpu gpu(clock, setup, spec, faults);
  capture::Crew crew(clock);
  const HostTime origin = clock.now() + std::chrono::milliseconds(1);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    crew.start(capture::Turn::kTraining, [&, i] {
      play_job(clock, gpu.name(), jobs[i], origin, results[i]);
    });
  }
  crew.wait();
  return results;
}

/// A rank of the recorded sample job by itself.
inline run::LoadedRun sample_rank(std::uint32_t rank, std::uint32_t iterations) {
  run::RunConfig config;
  config.file = "run.json";
  config.iterations = iterations;
  config.training.traces = {std::string(BUBBLESIM_SOURCE_DIR) + "/traces/samples/training"};
  const std::string devices = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices";
  return must(run::lone_rank(must(run::load_run(config, devices)), rank));
}

/// The ends of spans that lie end to end from 0 on.
inline std::vector<Duration> ends_of(const std::vector<Duration>& spans) {
  std::vector<Duration> ends;
  for (const Duration span : spans) {
    ends.push_back((ends.empty() ? Duration{} : ends.back()) + span);
  }
  return ends;
}

}  // namespace bubblesim::measure

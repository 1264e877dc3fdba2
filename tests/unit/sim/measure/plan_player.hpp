// Plays plans on a fake GPU: host threads on a TurnClock, without a gate. Host times are the same
// as in workload::ProgramRun.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "sim/measure/job_plans.hpp"
#include "sim/program/rules.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_policies.hpp"
#include "tests/fault.hpp"

namespace bubblesim::measure {

using capture::Device, capture::HostClock, capture::HostTime;

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

/// The outcome of one job; instants are since the common start.
struct Played {
  std::vector<Duration> iterations;  ///< ends
  std::vector<Duration> passes;      ///< ends: all threads done, device idle
  std::string fault;                 ///< of the device
  std::uint64_t in_flight = 0;       ///< at the end
  CounterSet counters;
};

struct PlayedJob {
  capture::JobPlan plan;
  std::uint64_t passes = 1;
  /// False: threads go on with the next pass at once. True: a pass begins when the previous one
  /// has ended and the device is idle.
  bool pass_by_pass = false;
  Duration until = Duration::max();  ///< no step and no pass begins from then on
  capture::DeviceListener* listener = nullptr;
  bool dies = false;  ///< the device is dropped after the last step, not closed
};

/// One job: its threads, and where they stand.
class Player {
 public:
  Player(HostClock& clock, Device& device, const PlayedJob& job, HostTime origin, Played& into)
      : clock_(clock), device_(device), job_(job), origin_(origin), into_(into),
        threads_(job.plan.program.threads.size()) {
    done_.id = clock.bell_id();
  }

  void run() {
    const std::uint64_t rounds = job_.pass_by_pass ? job_.passes : 1;
    for (std::uint64_t i = 0; i < rounds && clock_.now() < end(); ++i) {
      for (Standing& thread : threads_) thread.last_end = clock_.now();
      capture::Crew crew(clock_);
      const auto first = static_cast<std::uint32_t>(capture::Turn::kTraining);
      for (std::uint32_t t = 0; t < threads_.size(); ++t) {
        crew.start(capture::Turn{first + 2 * job_.plan.client.value + std::min(t, 1U)},
                   [this, t, i] { play_thread(t, i); });
      }
      crew.wait();
      if (!job_.pass_by_pass) break;
      device_.wait_all();
      if (clock_.now() < end()) into_.passes.push_back(clock_.now() - origin_);
    }
  }

 private:
  struct Standing {
    HostTime last_end{};
    std::uint64_t steps_done = 0;
  };

  [[nodiscard]] HostTime end() const {
    return job_.until == Duration::max() ? HostTime::max() : origin_ + job_.until;
  }

  void play_thread(std::uint32_t index, std::uint64_t first_pass) {
    const auto& steps = job_.plan.program.threads[index].steps;
    const std::uint64_t last = job_.pass_by_pass ? first_pass + 1 : job_.passes;
    for (std::uint64_t pass = first_pass; pass < last && !steps.empty(); ++pass) {
      for (const program::Step& step : steps) {
        if (!await_hand_over(index, step, pass)) return;
        clock_.sleep_until(threads_[index].last_end + step.think.duration());
        if (clock_.now() >= end()) return;
        threads_[index].last_end = call(step, pass);
        clock_.sleep_until(threads_[index].last_end);
        ++threads_[index].steps_done;
        clock_.ring(done_);
      }
    }
  }

  bool await_hand_over(std::uint32_t index, const program::Step& step, std::uint64_t pass) {
    const program::Program& program = job_.plan.program;
    const program::StepDetail* after = program::hand_over(program, step);
    if (after == nullptr) return true;
    const Standing& other = threads_[after->after_thread];
    const std::uint64_t needed = program::steps_needed(program, *after, pass);
    while (other.steps_done < needed) {
      if (clock_.now() >= end()) return false;
      const std::uint32_t seen = done_.rings.load();
      clock_.wait(done_, seen, end());
    }
    HostTime& base = threads_[index].last_end;
    if (other.steps_done == needed) base = std::max(base, other.last_end);
    return true;
  }

  HostTime call(const program::Step& step, std::uint64_t pass) {
    const capture::OpInstance first{step.target, pass, 0};
    HostTime start = clock_.now();
    switch (step.kind) {
      case program::StepKind::kPause: return start + step.cost.duration();
      case program::StepKind::kIteration:
        if (step.target > 0) into_.iterations.push_back(start - origin_);
        return start + step.cost.duration();
      case program::StepKind::kEnd:
        into_.iterations.push_back(start - origin_);
        return start + step.cost.duration();
      case program::StepKind::kLaunch:
      case program::StepKind::kLaunchAndWait:
        device_.launch(first, step.count, 1.0, step.cost.duration());
        start = clock_.now();
        if (step.kind == program::StepKind::kLaunch) return start + step.cost.duration();
        device_.wait_stream(job_.plan.program.ops[step.target + step.count - 1].stream);
        break;
      case program::StepKind::kWaitStream: device_.wait_stream(step.target); break;
      case program::StepKind::kWaitDevice: device_.wait_all(); break;
      case program::StepKind::kWaitOp: device_.wait_op(step.target, pass); break;
    }
    const Duration lag =
        clock_.now() > start ? program::return_lag(job_.plan.program, step) : Duration{};
    return std::max(start + step.cost.duration(), clock_.now() + lag);
  }

  HostClock& clock_;
  Device& device_;
  const PlayedJob& job_;
  HostTime origin_;
  Played& into_;
  std::vector<Standing> threads_;
  capture::Bell done_;
};

inline void play_job(HostClock& clock, const std::string& address, const PlayedJob& job,
                     HostTime origin, Played& into) {
  auto device =
      capture::open_fake_device(address.substr(sizeof("fake:") - 1), clock, job.plan.client);
  ASSERT_TRUE(device) << device.error().text();
  const auto ready = (*device)->prepare({&job.plan, job.listener, {}});
  if (!ready) {
    into.fault = ready.error().text();
    return;
  }
  clock.sleep_until(origin);
  Player(clock, **device, job, origin, into).run();
  into.in_flight = (*device)->in_flight();
  if (job.dies) return;
  const auto closed = (*device)->close();
  into.in_flight = (*device)->in_flight();
  if (!closed) into.fault = closed.error().text();
  into.counters = (*device)->counters();
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
  const auto gpu = make_fake_gpu(spec, faults);
  capture::RigSetup setup;
  for (const PlayedJob& job : jobs) setup.jobs.push_back({job.plan, 100});
  const auto address = gpu->begin(clock, setup, sharing, shares);
  EXPECT_TRUE(address) << address.error().text();
  capture::Crew device(clock);
  device.start(capture::Turn::kDevice, [&] { gpu->run(); });
  {
    capture::Crew crew(clock);
    const HostTime origin = clock.now() + std::chrono::milliseconds(1);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      crew.start(capture::Turn::kTraining, [&, i] {
        play_job(clock, *address, jobs[i], origin, results[i]);
      });
    }
    crew.wait();
  }
  gpu->stop();
  device.wait();
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

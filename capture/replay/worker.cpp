#include "capture/replay/worker.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/control_segment.hpp"
#include "capture/replay/job_files.hpp"
#include "capture/replay/job_runner.hpp"

namespace bubblesim::capture {
namespace {

/// How often the process checks its jobs and its rig.
constexpr Duration kLook = std::chrono::seconds(1);

/// One job with all its parts; the device is destroyed before the gate, whose threads it has.
struct Job {
  WorkerJob setup;
  JobPlan plan;
  std::unique_ptr<ControlSeat> seat;
  std::unique_ptr<GateClient> gate;
  std::unique_ptr<Device> device;
  std::unique_ptr<JobRunner> runner;
  std::atomic<bool> ended{false};
  std::optional<Error> fault;  ///< written before `ended`
};

WorkerEnd fault_of(WorkerExit exit, const Error& error) { return {exit, error.text()}; }

class Worker {
 public:
  Worker(const WorkerSetup& setup, const OpenDevice& open_device, HostClock& clock)
      : setup_(setup), open_device_(open_device), clock_(clock) {}

  WorkerEnd run() {
    if (auto fault = get_ready()) {
      for (const auto& job : jobs_) {
        if (job->seat) job->seat->fail(fault->text);
      }
      return *std::move(fault);
    }
    for (const auto& job : jobs_) job->seat->set_state(WorkerState::kReady);
    const std::optional<HostTime> start = await_start();
    if (!start) {
      for (const auto& job : jobs_) job->seat->fail("stopped before the start");
      return {};
    }
    for (const auto& job : jobs_) job->device->settle();
    run_jobs(*start);
    for (const auto& job : jobs_) {
      if (job->fault) return fault_of(WorkerExit::kDevice, *job->fault);
    }
    return {};
  }

 private:
  std::optional<WorkerEnd> get_ready() {
    for (const WorkerJob& setup : setup_.jobs) {
      jobs_.push_back(std::make_unique<Job>());
      jobs_.back()->setup = setup;
      if (auto fault = read_plan(*jobs_.back())) return fault;
    }
    for (const auto& job : jobs_) {
      if (auto fault = open(*job)) return fault;
    }
    for (const auto& job : jobs_) {
      const auto say = [seat = job->seat.get()](const std::string& text) { seat->say(text); };
      if (const auto done = job->runner->prepare(say); !done) {
        return fault_of(WorkerExit::kDevice, done.error());
      }
    }
    return std::nullopt;
  }

  // The plan has the job's client, and so its seat: without it the rig learns by the process's end.
  std::optional<WorkerEnd> read_plan(Job& job) {
    auto plan = read_job_plan(job.setup.plan);
    if (!plan) {
      std::string faults;
      for (const Error& error : plan.error()) faults += (faults.empty() ? "" : "\n") + error.text();
      return WorkerEnd{WorkerExit::kInput, faults};
    }
    job.plan = *std::move(plan);
    auto seat = ControlSeat::take(setup_.control, clock_, job.plan.client);
    if (!seat) return fault_of(WorkerExit::kInput, seat.error());
    job.seat = *std::move(seat);
    return std::nullopt;
  }

  std::optional<WorkerEnd> open(Job& job) {
    if (!job.setup.gate.empty()) {
      auto gate = GateClient::open(job.setup.gate, job.plan.client, clock_);
      if (!gate) return fault_of(WorkerExit::kInput, gate.error());
      job.gate = *std::move(gate);
    }
    auto device = open_device_(job.setup.device, clock_, job.plan.client);
    if (!device) return fault_of(WorkerExit::kDevice, device.error());
    job.device = *std::move(device);
    ControlSeat* seat = job.seat.get();
    // The rig learns of the last iteration at once, to stop the others: closing takes time.
    const std::uint64_t wanted = job.plan.loop ? job.plan.loop->iterations : 0;
    const auto on_iteration = [seat, wanted, iterations = std::uint64_t{0}]() mutable {
      if (++iterations == wanted) seat->set_state(WorkerState::kEnding);
    };
    job.runner = std::make_unique<JobRunner>(
        job.plan, JobSetup{&clock_, job.device.get(), job.gate.get(),
                           [seat] { seat->add_progress(); }, on_iteration});
    return std::nullopt;
  }

  // All jobs of a process start together; before that the rig stops them together.
  std::optional<HostTime> await_start() {
    ControlSeat& seat = *jobs_.front()->seat;
    while (true) {
      const std::uint32_t seen = seat.calls();
      if (seat.stop_asked()) return std::nullopt;
      if (const auto start = seat.start()) return start;
      seat.add_progress();
      seat.wait_for_call(seen, clock_.now() + kLook);
    }
  }

  void run_jobs(HostTime start) {
    Crew crew(clock_);
    for (const auto& job : jobs_) {
      job->seat->set_state(WorkerState::kRunning);
      crew.start(Turn::kControl, [this, &job = *job, start] { run_job(job, start); });
    }
    look_after_jobs();
    crew.wait();
  }

  void run_job(Job& job, HostTime start) {
    ReplayEnd end = job.runner->run(start);
    job.fault = std::move(end.fault);
    if (const auto written = write_job_record(job.setup.record, end.record);
        !written && !job.fault) {
      job.fault = written.error();
    }
    job.ended.store(true);
    if (job.fault) {
      job.seat->fail(job.fault->text());
    } else {
      job.seat->set_state(WorkerState::kDone);
    }
    jobs_.front()->seat->call_worker();
  }

  void look_after_jobs() {
    ControlSeat& seat = *jobs_.front()->seat;
    while (true) {
      const std::uint32_t seen = seat.calls();
      bool all_ended = true;
      for (const auto& job : jobs_) {
        if (job->ended.load()) continue;
        all_ended = false;
        // Held, without requests, or thinking: these states end by themselves or by the rig.
        if (job->runner->inside_device() == 0) job->seat->add_progress();
        if (job->seat->stop_asked()) job->runner->request_stop();
      }
      if (all_ended) return;
      seat.wait_for_call(seen, clock_.now() + kLook);
    }
  }

  const WorkerSetup& setup_;
  const OpenDevice& open_device_;
  HostClock& clock_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace

WorkerEnd run_worker(const WorkerSetup& setup, const OpenDevice& open_device) {
  auto clock = open_clock(setup.clock);
  if (!clock) return fault_of(WorkerExit::kInput, clock.error());
  const auto part = (*clock)->join(Turn::kControl);
  return Worker(setup, open_device, **clock).run();
}

}  // namespace bubblesim::capture

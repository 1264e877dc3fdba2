// Runs a plan on a device, behind a gate: the plan's host threads, each a thread that takes part in
// the clock.
//
// A job that trains does pass after pass until it has reached its iterations or is stopped. A
// service does a pass for each batch of requests, when it is idle; a pass ends with its threads and
// all their launches. An online service ends when its last request is served.
//
// A stop ends threads' think times, their waits for each other and their waits for room in the
// window, and lets no further launch reach the device. It does not end calls of the device, which
// return when the launched operations have ended, nor a hold of the policy, which ends with the
// gate.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_client.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/host_signals.hpp"
#include "capture/replay/job_plan.hpp"
#include "capture/replay/job_record.hpp"
#include "capture/replay/launch_path.hpp"
#include "capture/replay/replay_thread.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/session/bubble_watch.hpp"

namespace bubblesim::capture {

// Reacts to a job's operations: tells the gate of completions and bubbles, writes operations down,
// wakes threads that wait for room.

class DeviceWatch final : public DeviceListener {
 public:
  /// All outlive it; `gate` may be null, `progress` empty. Operations go into `record`.
  DeviceWatch(const JobPlan& plan, GateClient* gate, HostSignals& signals,
              const std::function<void()>& progress, JobRecord& record)
      : plan_(plan), gate_(gate), signals_(signals), progress_(progress), record_(record),
        bubbles_(plan.bubbles) {}

  /// Whether the plan asks for anything that needs to hear of operations.
  [[nodiscard]] static bool is_needed(const JobPlan& plan, const GateClient* gate) {
    if (plan.record_operations) return true;
    return gate != nullptr && (plan.report_completions || !plan.bubbles.empty());
  }

  /// Called before the first launch: recorded instants are since `origin`.
  void begin(HostTime origin) { origin_ = origin; }

  void on_started(const OpInstance& op, HostTime) override {
    if (gate_ == nullptr) return;
    if (bubbles_.op_started(plan_.program.ops[op.op].kind)) gate_->bubble_ended();
  }
  void on_finished(const OpInstance& op, HostTime start, HostTime end) override {
    const program::WorkKind kind = plan_.program.ops[op.op].kind;
    if (plan_.record_operations) {
      // A kernel may end before its launch call has returned: the call is added at the end.
      record_.operations.push_back(
          {op.op, op.pass, {}, start - origin_, end - origin_, {}, signals_.now() - origin_});
      launches_.push_back(op.launch);
    }
    if (progress_) progress_();
    signals_.notify(WakeEvent::kDone);
    if (gate_ == nullptr) return;
    if (plan_.report_completions) gate_->completed(kind, op.launch);
    const policy::BubbleInfo* bubble = bubbles_.op_finished(op.op, kind);
    if (bubble != nullptr) gate_->bubble_began(*bubble);
  }

  /// After Device::close(). `path` has the launch calls.
  void add_calls(const LaunchPath& path) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const LaunchPath::Call call = path.call(launches_[i]);
      record_.operations[i].called = call.start - origin_;
      record_.operations[i].returned = call.end - origin_;
    }
  }

 private:
  const JobPlan& plan_;
  GateClient* gate_;
  HostSignals& signals_;
  const std::function<void()>& progress_;
  JobRecord& record_;
  HostTime origin_{};
  policy::BubbleWatch bubbles_;
  std::vector<std::uint64_t> launches_;  ///< launch numbers of the operations
};

// Queues a service's requests and says when the next batch starts (program::Batching), asked when
// the service is free.

class RequestQueue {
 public:
  /// `mode` outlives it. Instants are since the job's time 0.
  explicit RequestQueue(const ServeMode& mode) : mode_(mode) {}

  /// The time from `now` on at which the next batch is due. Nothing: no more requests. Offline:
  /// `now`.
  [[nodiscard]] std::optional<Duration> next_start(Duration now) const {
    if (!mode_.online) return now;
    const std::vector<Duration>& arrivals = mode_.arrivals;
    if (next_ == arrivals.size()) return std::nullopt;
    const Duration due = mode_.batching.due(arrivals.size() - next_,
                                            [&](std::size_t i) { return arrivals[next_ + i]; });
    return std::max(due, now);
  }

  /// Takes the batch that starts now, and returns its number of requests. Precondition: `now` is at
  /// or after next_start().
  std::uint64_t take(Duration now) {
    if (!mode_.online) return mode_.batching.max_batch;
    first_ = next_;
    const auto first = mode_.arrivals.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto arrived = std::upper_bound(first, mode_.arrivals.end(), now);
    next_ += mode_.batching.batch_size(static_cast<std::size_t>(arrived - first));
    return next_ - first_;
  }
  /// Arrivals of the batch that was taken last; offline: empty.
  [[nodiscard]] std::span<const Duration> batch() const {
    return std::span(mode_.arrivals).subspan(first_, next_ - first_);
  }
  /// The batch was served.
  void served() { first_ = next_; }

  /// Requests that have arrived by `end` and were not served.
  [[nodiscard]] std::vector<Duration> unfinished(Duration end) const {
    if (!mode_.online) return {};
    const auto arrived = std::upper_bound(mode_.arrivals.begin(), mode_.arrivals.end(), end);
    const auto first = mode_.arrivals.begin() + static_cast<std::ptrdiff_t>(first_);
    return first < arrived ? std::vector<Duration>(first, arrived) : std::vector<Duration>();
  }

 private:
  const ServeMode& mode_;
  std::size_t first_ = 0;  ///< first request taken and not served
  std::size_t next_ = 0;   ///< first request not taken
};

/// The environment of a job. All pointers outlive the runner.
struct JobSetup {
  HostClock* clock = nullptr;
  Device* device = nullptr;
  GateClient* gate = nullptr;            ///< null: launches go on unasked
  std::function<void()> on_progress;     ///< steps and ended operations; any thread; may be empty
  std::function<void()> on_iteration;    ///< iterations, a service's passes; may be empty
};

/// The result of a job.
struct ReplayEnd {
  JobRecord record;            ///< up to the fault, if any
  std::optional<Error> fault;  ///< of the device
};

class JobRunner {
 public:
  /// `plan` was checked (parse_job_plan) and outlives the runner.
  JobRunner(const JobPlan& plan, const JobSetup& setup);
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Gets the device ready. Fault: the device's.
  [[nodiscard]] Result<void> prepare(std::function<void(const std::string&)> progress);

  /// Once, after prepare(), in a thread that takes part in the clock; returns when the job has
  /// ended and the device is closed. `origin` is time 0 of the plan and of the record, and may lie
  /// ahead.
  [[nodiscard]] ReplayEnd run(HostTime origin);

  /// Makes the job end soon. Called by any thread that takes part in the clock; before run() too.
  void request_stop();

  /// Threads inside calls of the device: if none is, the job is not stuck there.
  [[nodiscard]] std::uint32_t inside_device() const { return signals_.inside_device(); }

 private:
  void run_thread(std::size_t index);
  void loop(ReplayThread& thread);
  void lead(ReplayThread& thread);
  void follow(ReplayThread& thread);
  [[nodiscard]] bool serve_batch(ReplayThread& thread);
  [[nodiscard]] Turn turn_of(std::size_t thread) const;
  [[nodiscard]] Duration since_origin() const { return signals_.now() - origin_; }
  void write_costs();

  const JobPlan& plan_;
  JobSetup setup_;
  HostSignals signals_;
  JobRecord record_;
  IterationLog log_;
  DeviceWatch watch_;
  std::unique_ptr<LaunchPath> path_;
  ReplayThreadSetup thread_setup_;
  std::vector<std::unique_ptr<ReplayThread>> threads_;  ///< of the plan
  std::uint32_t working_threads_ = 0;                 ///< that have steps
  std::size_t leader_ = 0;                            ///< the first of them
  HostTime origin_{};
  HostTime begin_{};                                  ///< of the first pass

  // A service's pass; written by the leader while the others wait for the next one.
  std::optional<RequestQueue> queue_;
  HostTime pass_begin_{};
  double pass_factor_ = 1;
  std::atomic<std::uint64_t> passes_begun_{0};
  std::atomic<std::uint64_t> followers_done_{0};      ///< over all passes
};

}  // namespace bubblesim::capture

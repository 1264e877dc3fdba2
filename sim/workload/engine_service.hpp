// A language-model server in a run: its scheduler (sim/serving) decides what each step does, the
// program does it on the GPU, and requests end as their tokens are there.
//
// A step starts when the one before it has ended, its tokens being on the host. What vLLM hides by
// launching a step before its predecessor has ended (a launch and copies of some bytes, about
// 20 us) is not hidden. With Pacing::kOneAhead a step's host time is.
//
// A server over several GPUs starts a step on all of them at once, each GPU's program being told of
// it, and the step has ended when each of them has done its part.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/serving/scheduler.hpp"
#include "sim/serving/step_queue.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"
#include "sim/workload/program_run.hpp"
#include "sim/workload/request_service.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::workload {

/// Takes requests whose prompts are computed to where they are decoded.
class HandoverSink {
 public:
  virtual ~HandoverSink() = default;
  /// `request` has its first token (Request::handed).
  virtual void hand_over(serving::Request request, SimTime now) = 0;
  /// Those that have not arrived yet.
  [[nodiscard]] virtual std::vector<serving::UnfinishedRequest> underway() const = 0;
};

class EngineService final : public RequestService {
 public:
  /// `run` runs the program of `steps`, was set up with Repeat::kOnePass, and its observer must
  /// call pass_finished. Precondition: check(spec); lengths that its settings can serve.
  EngineService(ProgramRun& run, StepProgram& steps, const serving::SchedulerSpec& spec,
                LengthSequence lengths, ServiceListener& listener);

  /// Another GPU of the server. `run` and `steps` as the constructor's. Before anything arrives.
  void add_gpu(ProgramRun& run, StepProgram& steps) { gpus_.push_back({&run, &steps}); }
  /// From now on it computes prompts and first tokens only; what comes after goes to `sink`, which
  /// outlives it. Online, before anything arrives.
  void compute_prompts_for(HandoverSink& sink) { sink_ = &sink; }
  /// A request whose prompt another server has computed.
  void take_over(const serving::Request& request, SimTime now);
  /// Requests have no end: as many wait as could run.
  void start_offline(SimTime now) override;
  void arrive_together(std::uint64_t first, std::uint64_t count, SimTime now) override;
  /// Of each GPU's part of a step.
  void pass_finished(SimTime now) override;
  [[nodiscard]] std::optional<std::uint64_t> serving() const override;
  [[nodiscard]] std::size_t queued() const override { return scheduler_.waiting(); }
  [[nodiscard]] std::vector<SimTime> unfinished() const override;
  [[nodiscard]] std::vector<serving::UnfinishedRequest> unfinished_tokens() const override;
  [[nodiscard]] const serving::Scheduler* scheduler() const override { return &scheduler_; }

 private:
  struct Gpu {
    ProgramRun* run = nullptr;
    StepProgram* steps = nullptr;
  };

  void arrive(std::uint64_t number, SimTime now);
  void refill(SimTime now);
  void finished(const serving::FinishedRequest& request, SimTime now);

  std::vector<Gpu> gpus_;
  std::size_t at_work_ = 0;  ///< GPUs that have not done their part of the step
  ServiceListener& listener_;
  LengthSequence lengths_;
  serving::Scheduler scheduler_;
  serving::StepQueue queue_;
  HandoverSink* sink_ = nullptr;  ///< null: it serves requests to their end
  std::unordered_map<std::uint64_t, serving::Request> prompts_;  ///< for it, as they arrived
  std::uint64_t next_offline_ = 0;
  bool offline_ = false;
};

}  // namespace bubblesim::workload

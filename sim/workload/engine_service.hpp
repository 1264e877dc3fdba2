// A language-model server in a run: its scheduler (sim/serving) decides each step's work, the
// program does it on the GPU, and requests end with their last tokens.
//
// A step starts when the previous one has ended and its tokens are on the host. vLLM launches a
// step before its predecessor has ended and so hides a launch and copies of some bytes (about 20
// us); these are not hidden here. With Pacing::kOneAhead a step's host time is hidden.
//
// A server over several GPUs starts a step on all of them at once; the step ends when each has done
// its part. The same holds for data-parallel members, each with a scheduler and GPUs of its own:
// the step of an idle member decodes a token of no request (vLLM, `execute_dummy_batch`). A request
// goes to the member whose scheduler has the least load().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/serving/scheduler.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"
#include "sim/workload/program_run.hpp"
#include "sim/workload/request_service.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::workload {

/// Takes requests with computed prompts to where they are decoded.
class HandoverSink {
 public:
  virtual ~HandoverSink() = default;
  /// `request` includes its first token (Request::handed).
  virtual void hand_over(serving::Request request, SimTime now) = 0;
  /// Requests that have not arrived yet.
  [[nodiscard]] virtual std::vector<serving::UnfinishedRequest> underway() const = 0;
};

class EngineService final : public RequestService {
 public:
  /// `run` runs the program of `steps`, was set up with Repeat::kOnePass, and its observer must
  /// call pass_finished. Precondition: check(spec); lengths that its settings can serve.
  EngineService(ProgramRun& run, StepProgram& steps, const serving::SchedulerSpec& spec,
                LengthSequence lengths, ServiceListener& listener);

  /// Adds another GPU of the last member. `run` and `steps` as the constructor's. Must be called
  /// before anything arrives.
  void add_gpu(ProgramRun& run, StepProgram& steps) {
    members_.back()->gpus.push_back({&run, &steps});
  }
  /// Adds another member; the next GPUs are its own. Must be called before anything arrives.
  void add_member();
  /// From now on the server computes only prompts and first tokens; `sink`, which outlives it,
  /// takes the rest. Called online, before anything arrives.
  void compute_prompts_for(HandoverSink& sink) { sink_ = &sink; }
  /// Takes a request whose prompt another server has computed.
  void take_over(const serving::Request& request, SimTime now);
  /// Requests have no end: as many wait as can run.
  void start_offline(SimTime now) override;
  void enqueue(std::uint64_t number, SimTime now) override;
  void serve_waiting(SimTime now) override;
  /// Called at the end of each GPU's part of a step; the step ends with the last of them.
  void pass_finished(SimTime now) override;
  [[nodiscard]] std::optional<std::uint64_t> serving(std::size_t member) const override;
  [[nodiscard]] std::size_t queued() const override;
  [[nodiscard]] std::vector<serving::UnfinishedRequest> unfinished() const override;
  [[nodiscard]] std::span<const serving::Scheduler* const> schedulers() const override {
    return schedulers_;
  }

 private:
  struct Gpu {
    ProgramRun* run = nullptr;
    StepProgram* steps = nullptr;
  };

  struct Member {
    explicit Member(const serving::SchedulerSpec& spec) : scheduler(spec), queue(scheduler) {}

    serving::Scheduler scheduler;
    serving::StepQueue queue;
    std::vector<Gpu> gpus;
    std::optional<serving::StepStart> start;  ///< of the step that starts; nothing: the member
                                              ///< idles
  };

  [[nodiscard]] Member& least_loaded();
  void refill(SimTime now);
  void keep_waiting(Member& member, SimTime now);
  [[nodiscard]] const serving::ScheduledStep& step_of(const Member& member) const {
    return member.start ? *member.start->step : idle_;
  }
  void start_step(SimTime now);
  void tell(const serving::StepOutcome& outcome, SimTime now);
  void finished(const serving::FinishedRequest& request, SimTime now);

  serving::SchedulerSpec spec_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<const serving::Scheduler*> schedulers_;  ///< by member
  serving::ScheduledStep idle_;                        ///< of a member without work
  std::vector<serving::StepShape> shapes_;             ///< by member, of the step that starts
  std::vector<const serving::StepOutcome*> outcomes_;  ///< of the step that ends
  std::size_t at_work_ = 0;                            ///< GPUs still at work on the step
  ServiceListener& listener_;
  LengthSequence lengths_;
  HandoverSink* sink_ = nullptr;  ///< null: it serves requests to their end
  std::unordered_map<std::uint64_t, serving::Request> prompts_;  ///< waiting for it, as they
                                                                 ///< arrived
  std::uint64_t next_offline_ = 0;
  bool offline_ = false;
};

}  // namespace bubblesim::workload

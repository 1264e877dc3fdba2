// Drives a policy by the events of one simulated GPU.
//
// It is the simulator's counterpart of the real-GPU gate: launches pass through it before the
// driver, completions reach the policy after the device's notice delay, ticks come from the
// engine's clock, bubbles begin after the table's operations. The session checks decisions, and the
// outlet carries them out; an illegal one stops the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/base/result.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/bubble_watch.hpp"
#include "sim/policy/session/session.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/schedule/gpu_outlet.hpp"
#include "sim/schedule/method_timer.hpp"
#include "sim/workload/launch.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::schedule {

class PolicyDriver final : public workload::LaunchGate {
 public:
  /// `bubbles` may be null unless the policy needs them. All references outlive the driver.
  PolicyDriver(engine::Engine& engine, gpu::Gpu& gpu, const policy::PolicySpec& spec,
               policy::Policy& policy, const BubbleTable* bubbles, HoldListener* holds);

  /// Attaches runs in order of policy clients, before the start; a refused filler has no run.
  /// `resident` of the client's `memory` is on the device; 0: not known. `terms` has the delay from
  /// a launch call until the policy hears of it and the launch may go on.
  void attach(workload::ProgramRun* run, Bytes memory = {}, Bytes resident = {},
              const policy::GateTerms& terms = {});
  /// Asks for the first tick.
  void start();

  /// Called by the runs' observers.
  void op_started(const workload::ProgramRun& run, std::uint32_t op, SimTime now);
  void op_finished(const workload::OpRecord& record);
  /// An iteration of training, or a pass of a filler, has ended.
  void iteration_ended(const workload::ProgramRun& run, Duration length, SimTime now);

  /// Counts, held launches, and the illegal decision that stopped the run.
  [[nodiscard]] policy::CheckedActions& session() { return session_; }
  [[nodiscard]] const policy::CheckedActions& session() const { return session_; }

  bool may_launch(const workload::LaunchCall& call, SimTime now) override;

 private:
  /// A launch on its way to the policy; its thread waits.
  struct Question {
    workload::LaunchCall call;
    bool waits = true;
  };

  [[nodiscard]] ClientId client_of(const workload::ProgramRun& run) const {
    return ClientId{static_cast<std::uint32_t>(outlet_.client_of(run))};
  }
  [[nodiscard]] policy::LaunchInfo describe(const workload::LaunchCall& call) const;
  [[nodiscard]] static policy::Instant instant(SimTime now) { return now - kSimStart; }
  void tick(SimTime now) { session_.on_tick(instant(now)); }
  [[nodiscard]] bool is_admitted(const workload::LaunchCall& call, bool waits, SimTime now);
  void ask(const Question& question, SimTime now);
  void notify(const policy::CompletionInfo& info, SimTime now) {
    session_.on_completion(info, instant(now));
  }

  engine::Engine& engine_;
  const gpu::Gpu& gpu_;
  bool notices_wanted_;
  std::optional<policy::BubbleWatch> bubbles_;  ///< of training, if the table is given
  MethodTimer<PolicyDriver> ticks_;
  WaitingItems<PolicyDriver, policy::CompletionInfo> notices_;
  WaitingItems<PolicyDriver, Question> questions_;  ///< at most one for each thread
  GpuOutlet outlet_;
  policy::Session<GpuOutlet> session_;
};

}  // namespace bubblesim::schedule

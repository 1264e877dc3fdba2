#include "capture/replay/launch_path.hpp"

#include <algorithm>

#include "sim/base/divide.hpp"
#include "sim/policy/session/launch_description.hpp"

namespace bubblesim::capture {
namespace {

/// The longest time after which a thread that waits for room in the window looks again: the host
/// may have changed the window, and devices without a listener do not report ends.
constexpr Duration kWindowLook = std::chrono::microseconds(20);

std::uint32_t warps_of(const traces::LaunchShape& shape) {
  const std::uint64_t warps = divide_up(shape.threads_per_block(), policy::kWarpThreads);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(warps, program::kNoIndex / policy::kWarpThreads));
}

}  // namespace

LaunchPath::LaunchPath(const JobPlan& plan, Device& device, GateClient* gate, HostSignals& signals)
    : plan_(plan), device_(device), gate_(gate), signals_(signals),
      launched_(plan.program.ops.size()) {
  if (gate_ != nullptr) describe_all();
}

void LaunchPath::describe_all() {
  info_of_op_.assign(plan_.program.ops.size(), program::kNoIndex);
  for (const program::ThreadProgram& thread : plan_.program.threads) {
    for (const program::Step& step : thread.steps) {
      if (!launches(step)) continue;
      info_of_op_[step.target] = static_cast<std::uint32_t>(infos_.size());
      infos_.push_back(describe(plan_, device_, step.target, step.count));
    }
  }
}

policy::LaunchInfo LaunchPath::describe(const JobPlan& plan, const Device& device,
                                        std::uint32_t first, std::uint32_t count) {
  const auto kernel_of = [&](std::uint32_t op) {
    const KernelForm& form = plan.forms[plan.program.ops[op].profile];
    return policy::LaunchedKernel{form.shape.blocks(), warps_of(form.shape),
                                  device.resident_blocks(op), form.bound};
  };
  policy::LaunchInfo info = policy::describe_launch(plan.program, first, count, kernel_of);
  info.client = plan.client;
  return info;
}

bool LaunchPath::await_window() {
  return signals_.await(
      WakeEvent::kDone,
      [this] {
        const std::uint32_t window = gate_->window();
        return window == 0 || device_.in_flight() < window;
      },
      kWindowLook);
}

std::uint64_t LaunchPath::number_launch() {
  return gate_ != nullptr ? gate_->last_launch() : ungated_launches_.fetch_add(1) + 1;
}

bool LaunchPath::launch(const program::Step& step, std::uint64_t pass, double factor,
                        LaunchCosts& costs) {
  if (gate_ != nullptr) {
    if (!await_window()) return false;
    const Passage passage = gate_->launch(infos_[info_of_op_[step.target]]);
    (passage.held ? costs.held : costs.gate) += passage.asked;
  }
  if (signals_.stopping()) return false;
  const OpInstance first{step.target, pass, number_launch()};
  const HostTime start = signals_.now();
  {
    const HostSignals::InsideDevice inside(signals_);
    device_.launch(first, step.count, factor, step.cost.duration());
  }
  ++costs.launches;
  if (plan_.record_operations) record(first.launch, {start, call_end(step)});
  for (std::uint32_t op = step.target; op < step.target + step.count; ++op) {
    launched_[op].store(pass + 1);
  }
  signals_.notify(WakeEvent::kStep);
  return true;
}

bool LaunchPath::await_launch(std::uint32_t op, std::uint64_t pass) {
  if (launched_[op].load() > pass) return true;
  return signals_.await(WakeEvent::kStep, [this, op, pass] { return launched_[op].load() > pass; });
}

// If the device's calls take the plan's time, the caller sleeps until this time.
HostTime LaunchPath::call_end(const program::Step& step) const {
  const bool planned = device_.host_costs() == HostCosts::kPlanned;
  return signals_.now() + (planned ? step.cost.duration() : Duration{});
}

void LaunchPath::record(std::uint64_t launch, const Call& call) {
  const std::lock_guard lock(mutex_);
  calls_[launch] = call;
}

LaunchPath::Call LaunchPath::call(std::uint64_t launch) const {
  const auto found = calls_.find(launch);
  return found == calls_.end() ? Call{} : found->second;
}

}  // namespace bubblesim::capture

// A policy's session on one GPU, from its first tick to its last: the one place that calls a
// policy, whatever drives it.
//
// These rules are the same for all drivers, and so stand here:
// - reports to a policy: only the declared kinds, and only of clients that have not ended;
// - launches that are held, oldest first, and those that a call released: held() falls at once,
//   the threads go on when the call has returned, before the launch that the call was about;
// - calls that do not nest: an event during a call is reported after it;
// - bubbles: an end is reported only if the beginning was;
// - ticks: the next one is asked for after every call; at most 10,000 in one instant;
// - the check of every decision and the words of its error (CheckedActions), and the counts.
//
// Outlets and events differ between drivers; the session does not:
// - the simulated GPU can do all that is legal. It notices completions late, begins and ends
//   bubbles itself from a measured table, and has no client that dies;
// - a gate of live jobs cannot change a running process: most settings are refused. Clients die,
//   their threads may not wait at all (kNobodyWaits) or give up, preemption parks threads at the
//   gate, and a completion may come of a launch that is still held, which its driver keeps back;
// - the test driver has a device that runs one operation of each client, and records decisions.
//
// A template over its outlet, which is final, so that the path of an admitted launch is inlined.
// One thread; instants do not decrease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/call_mark.hpp"
#include "sim/policy/session/checked_actions.hpp"
#include "sim/policy/session/outlet.hpp"

namespace bubblesim::policy {

template <class OutletType>
class Session final : public CheckedActions {
 public:
  /// A policy may look again in the same instant, but not forever.
  static constexpr std::uint32_t kMostTicksInInstant = 10'000;

  /// The policy has been started (start.hpp). All references outlive the session. `turns`: the GPU
  /// is shared in time slices (SharingMode::kTimeSliced).
  Session(const PolicySpec& spec, Policy& policy, OutletType& outlet, bool turns)
      : CheckedActions(spec, outlet, turns), policy_(policy), final_outlet_(outlet),
        mark_(spec.name) {}

  /// Asks for the first tick.
  void begin(Instant now) { arm_tick(now); }

  /// A thread makes a launch call. Its consequences reach the outlet before this returns. Fields
  /// that the policy did not declare as needed are cleared in `launch`. The policy may hold the
  /// launch if it `waits` and has a waiter.
  Verdict on_launch(LaunchInfo&& launch, Waiter waiter, Instant now);
  void on_completion(const CompletionInfo& completion, Instant now) {
    if (!spec_.needs.completions || is_silent(completion.client)) return;
    call("on_completion", now, [&] { policy_.on_completion(completion, now, *this); });
  }
  void on_bubble_begin(const BubbleInfo& bubble, Instant now) {
    if (!spec_.needs.bubbles || is_silent(ClientId{0})) return;
    bubble_open_ = true;
    call("on_bubble_begin", now, [&] { policy_.on_bubble_begin(bubble, now, *this); });
  }
  /// May come during a call.
  void on_bubble_end(Instant now);
  /// An iteration of training has ended, or a pass of a client that serves requests.
  void on_iteration(ClientId client, Duration length, Instant now) {
    if (!spec_.needs.iterations || is_silent(client)) return;
    const IterationInfo info{client, ++clients_[client.index()].iterations, length};
    call("on_iteration", now, [&] { policy_.on_iteration(info, now, *this); });
  }
  /// The client's process has ended. Only fillers are reported as gone: nothing is told of client
  /// 0.
  void on_gone(ClientId client, Instant now);
  void on_tick(Instant now);

 private:
  [[nodiscard]] bool is_silent(ClientId client) const { return silent_[client.index()] != 0; }
  template <class Code>
  void call(const char* name, Instant now, const Code& code) {
    enter(name, now, code);
    settle();
  }
  template <class Code>
  void enter(const char* name, Instant now, const Code& code);
  void settle();
  void arm_tick(Instant now) {
    std::optional<Instant> tick;
    {
      const CallMark::Call marked(mark_, "next_tick", now);
      tick = policy_.next_tick();
    }
    final_outlet_.arm_tick(tick, now);
  }

  Policy& policy_;
  OutletType& final_outlet_;
  CallMark mark_;
  bool in_call_ = false;
  bool bubble_open_ = false;
  bool bubble_end_due_ = false;  ///< the policy has not heard of it yet
  Instant last_tick_{};
  std::uint32_t ticks_in_instant_ = 0;
};

template <class OutletType>
Verdict Session<OutletType>::on_launch(LaunchInfo&& launch, Waiter waiter, Instant now) {
  if (is_silent(launch.client)) return Verdict::kAdmit;
  if (!spec_.needs.kernel_durations) launch.profiled = {};
  if (!spec_.needs.kernel_classes) launch.bound = KernelClass::kUnknown;
  if (waiter == kNobodyWaits) launch.waits = false;
  Client& client = clients_[launch.client.index()];
  Verdict verdict = Verdict::kAdmit;
  const auto ask = [&] {
    if (spec_.needs.launches) verdict = policy_.on_launch(launch, now, *this);
  };
  enter("on_launch", now, ask);
  if (verdict == Verdict::kAdmit) {
    std::optional<LaunchForm> form;
    if (client.form) [[unlikely]] form.swap(client.form);
    settle();
    final_outlet_.admit(launch, waiter, form);
    return verdict;
  }
  if (verdict != Verdict::kHold) {
    refuse("gave the unknown verdict " + std::to_string(static_cast<unsigned>(verdict)));
  } else if (!launch.waits) {
    refuse("held a launch of client " + std::to_string(launch.client.value) +
           ", whose threads do not wait for verdicts");
  } else {
    client.held.push_back({launch, waiter, now});
    ++counts_.holds;
    final_outlet_.hold(client.held.back());
  }
  settle();
  return verdict;
}

template <class OutletType>
void Session<OutletType>::on_bubble_end(Instant now) {
  if (!bubble_open_ || is_silent(ClientId{0})) return;
  bubble_open_ = false;
  if (in_call_) {
    bubble_end_due_ = true;
  } else {
    call("on_bubble_end", now, [&] { policy_.on_bubble_end(now, *this); });
  }
}

template <class OutletType>
void Session<OutletType>::on_gone(ClientId client, Instant now) {
  Client& gone = clients_[client.index()];
  if (gone.gone) return;
  gone.gone = true;
  silent_[client.index()] = true;
  gone.held.clear();
  if (client.value == 0 || fault_) return;
  call("on_gone", now, [&] { policy_.on_gone(client, now, *this); });
}

template <class OutletType>
void Session<OutletType>::on_tick(Instant now) {
  if (fault_) return;
  ticks_in_instant_ = now == last_tick_ ? ticks_in_instant_ + 1 : 1;
  last_tick_ = now;
  if (ticks_in_instant_ > kMostTicksInInstant) {
    now_ = now;
    refuse("asks for ticks without end at one instant");
    return;
  }
  call("on_tick", now, [&] { policy_.on_tick(now, *this); });
}

template <class OutletType>
template <class Code>
void Session<OutletType>::enter(const char* name, Instant now, const Code& code) {
  ++counts_.calls;
  now_ = now;
  in_call_ = true;
  final_outlet_.call_begins();
  {
    const CallMark::Call marked(mark_, name, now);
    code();
  }
  final_outlet_.call_returned();
}

// Released threads go on, then the policy hears of events that came during the call.
template <class OutletType>
void Session<OutletType>::settle() {
  final_outlet_.settle();
  for (std::size_t i = 0; i < released_.size(); ++i) {
    ++counts_.released;
    counts_.held_time += now_ - released_[i].launch.since;
    final_outlet_.release(released_[i].launch, released_[i].form, now_);
  }
  released_.clear();
  in_call_ = false;
  if (bubble_end_due_) [[unlikely]] {
    bubble_end_due_ = false;
    if (!fault_) call("on_bubble_end", now_, [this] { policy_.on_bubble_end(now_, *this); });
  } else {
    arm_tick(now_);
  }
}

}  // namespace bubblesim::policy

// The target of a policy session's decisions. There are three outlets: the simulated GPU
// (sim/schedule/gpu_outlet.hpp), the gate of live jobs (capture/policy_host/policy_host.cpp), and
// the device of the test driver (sim/policy/testing).
//
// The session checks a decision before an outlet sees it: the client exists, the decision is legal.
// An outlet carries it out, or says why its hardware cannot.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// The thread of a launch, as a number that the outlet's driver chooses.
using Waiter = std::uint64_t;
/// The thread of this launch does not wait for verdicts, so the policy may not hold it.
inline constexpr Waiter kNobodyWaits = std::numeric_limits<Waiter>::max();

struct HeldLaunch {
  LaunchInfo info;
  Waiter waiter = kNobodyWaits;
  Instant since{};
};

/// Why an outlet cannot carry out a policy's decision, as the end of the sentence that ends the
/// run: " while it runs; a gate cannot rewrite kernels". Empty: done.
using Refusal = std::string_view;

class Outlet {
 public:
  virtual ~Outlet() = default;

  /// The verdict on this launch was to admit it; launches released by the same call have gone on
  /// before. `form`: set by the policy, if any.
  virtual void admit(const LaunchInfo& launch, Waiter waiter,
                     const std::optional<LaunchForm>& form) = 0;
  /// The verdict was to hold the launch: its thread waits for the release.
  virtual void hold(const HeldLaunch& /*launch*/) {}
  /// Called after the call that released the launch: its thread goes on.
  virtual void release(const HeldLaunch& launch, const std::optional<LaunchForm>& form,
                       Instant now) = 0;

  /// Decisions about a client that exists and was admitted; each takes effect at once.
  virtual Refusal cap(ClientId client, std::uint32_t percentage) = 0;
  virtual Refusal prioritise(ClientId client, std::int32_t priority) = 0;
  virtual Refusal slice(ClientId client, Duration slice) = 0;
  virtual Refusal preempt(ClientId client, Preemption how) = 0;
  virtual Refusal proceed(ClientId client) = 0;
  /// The client's next launch that goes on gets this form, from admit() or release().
  virtual Refusal reshape(ClientId client, const LaunchForm& form) = 0;
  /// `moved` bytes go to or from the device; afterwards `resident` bytes of the client are there.
  virtual Refusal move_memory(ClientId client, Bytes resident, Bytes moved) = 0;
  /// From now on the client's launches ask, or only tell.
  virtual Refusal set_asking(ClientId client, bool asks) = 0;

  /// Called after each call of the policy, once its decisions are carried out: `next` is when
  /// Session::on_tick is due. A past instant means at once; nothing: never.
  virtual void arm_tick(std::optional<Instant> next, Instant now) = 0;

  /// Surround the policy's own code, for outlets whose clock goes on meanwhile.
  virtual void call_begins() {}
  virtual void call_returned() {}
  /// The call has returned, and no launch that it released has gone on yet.
  virtual void settle() {}
  /// A decision was illegal: the present call is the last.
  virtual void end() {}
};

}  // namespace bubblesim::policy

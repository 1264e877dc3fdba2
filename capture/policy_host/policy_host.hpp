// Drives a policy, the simulator's own object, by a real clock: launches come through the gate,
// decisions go back through it.
//
// The session is the simulator's own (sim/policy/session), the outlet is the gate. A launch has the
// instant at which it asked, however late the host reads it; a tick has the instant at which it
// runs, after all waiting messages were told. A decision that hardware cannot carry out while a job
// runs ends the run as an illegal one does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_client.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/session/checked_actions.hpp"

namespace bubblesim::capture {

struct HostedClient {
  Bytes memory;
  GateMode mode = GateMode::kAsk;  ///< kPass where policy::hears_launches says no; not for training
                                   ///< that is to ask
  std::uint32_t window = 0;  ///< GateClient::window(); 0: no limit
};

struct PolicyHostSetup {
  const policy::PolicySpec* spec = nullptr;
  policy::Policy* policy = nullptr;     ///< start(), share() and admit() have been called
  std::vector<HostedClient> clients;    ///< by id; at most kMostGateClients
  HostTime origin{};                    ///< the policy's instant 0
  policy::SharingMode sharing = policy::SharingMode::kSpatial;  ///< as clients share the GPU
  bool one_gpu = true;  ///< clients see no other; false: the filler's first launch says which
};

/// A distribution of spans, in whole nanoseconds.
struct SpanSummary {
  std::uint64_t count = 0;
  Duration mean{}, p50{}, p95{}, p99{}, max{};
};

// A distribution of spans in bounded memory: logarithmic buckets.

/// Count, mean and largest are exact. A percentile is the middle of its bucket: at most 1.6 % off
/// (32 buckets an octave, so that a bucket is at most a 32nd of its spans wide), exact below 64 ns.
/// Negative spans count as zero. 16 KiB.
class SpanHistogram {
 public:
  void add(Duration span);
  [[nodiscard]] SpanSummary summary() const;

 private:
  [[nodiscard]] Duration percentile(double percent) const;

  std::array<std::uint64_t, 2048> counts_{};
  std::uint64_t total_ = 0;
  double sum_ = 0;  ///< ns
  Duration max_{};
};

/// The host's counts and times.
struct PolicyHostCounts {
  policy::SessionCounts session;
  SpanSummary decision_latency;   ///< from a request's time to its verdict, if it was not held
  SpanSummary policy_call;        ///< inside the policy's own code
  std::uint64_t messages_dropped = 0;
  std::uint64_t clients_died = 0;
};

class PolicyHost {
 public:
  /// Makes the gate. `clock` outlives the host.
  [[nodiscard]] static Result<std::unique_ptr<PolicyHost>> make(HostClock& clock,
                                                                PolicyHostSetup setup);
  virtual ~PolicyHost() = default;

  /// What GateClient::open takes.
  [[nodiscard]] virtual const std::string& gate_name() const = 0;

  /// Sets the policy's instant 0. Before run().
  virtual void set_origin(HostTime origin) = 0;
  /// Decides until stop(), in the calling thread, which takes part in the clock. Returns early
  /// after an illegal decision or an exception; then, as after stop(), the gate is open to all.
  virtual void run() = 0;
  /// May be called by any thread that takes part in the clock; opens the gate.
  virtual void stop() = 0;
  /// The client has ended: no process will take its place, and its waiting launches are forgotten.
  /// Any thread may call this. The host itself notices a process that ends before its client: the
  /// next process takes the place.
  virtual void client_gone(ClientId client) = 0;

  /// After run():
  [[nodiscard]] virtual const std::optional<Error>& fault() const = 0;
  [[nodiscard]] virtual PolicyHostCounts counts() const = 0;
  /// The policy's notes for the reader (Policy::add_counts), and the gate's counts.
  [[nodiscard]] virtual CounterSet counters() const = 0;
};

// Makes a clock's times into the policy's instants, which never decrease, whatever the clock does.

class InstantLine {
 public:
  void set_origin(HostTime origin) {
    origin_ = origin;
    last_ = origin;
  }

  /// The instant of an event of `time` that is noticed at `now`: not before the last instant, not
  /// after `now`. Events moved to keep this are counted; events before the origin are at 0.
  policy::Instant at(HostTime time, HostTime now) {
    now = std::max(now, last_);
    const HostTime taken = std::clamp(time, last_, now);
    if (time < last_ && last_ > origin_) ++steps_;
    if (time > now) ++steps_;
    last_ = taken;
    return taken - origin_;
  }

  [[nodiscard]] HostTime last() const { return last_; }
  [[nodiscard]] HostTime time_of(policy::Instant instant) const { return origin_ + instant; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  HostTime origin_{};
  HostTime last_{};
  std::uint64_t steps_ = 0;
};

}  // namespace bubblesim::capture

// A policy host on a TurnClock, with a policy made of functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "tests/unit/capture/clock/host_instant.hpp"

namespace bubblesim::capture {

inline constexpr ClientId kFiller{1};

/// Forwards its calls to the functions below and logs them: "5us launch 1.2".
class ScriptedPolicy final : public policy::Policy {
 public:
  using Instant = policy::Instant;
  using Actions = policy::Actions;
  std::function<policy::Verdict(const policy::LaunchInfo&, Instant, Actions&)> launch;
  std::function<void(Instant, Actions&)> ticks;
  std::function<void(const policy::CompletionInfo&, Instant, Actions&)> completion;
  std::optional<Instant> next;
  std::vector<std::string> log;
  std::vector<policy::LaunchInfo> launches;

  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override;
  policy::Verdict on_launch(const policy::LaunchInfo& info, Instant now, Actions& actions) override;
  void on_completion(const policy::CompletionInfo& info, Instant now, Actions& actions) override;
  void on_bubble_begin(const policy::BubbleInfo& info, Instant now, Actions& actions) override;
  void on_bubble_end(Instant now, Actions& actions) override;
  void on_iteration(const policy::IterationInfo& info, Instant now, Actions& actions) override;
  void on_gone(ClientId client, Instant now, Actions& actions) override;
  [[nodiscard]] std::optional<Instant> next_tick() const override { return next; }
  void on_tick(Instant now, Actions& actions) override;
  void add_counts(CounterSet& counters) const override;

 private:
  void note(Instant now, const std::string& what);
};

/// Client 0's gate has mode `first`, the others ask. The calling thread is the controller.
class HostRig {
 public:
  explicit HostRig(policy::Needs needs = {}, std::uint32_t clients = 2,
                   GateMode first = GateMode::kTell, std::uint32_t window = 0);
  ~HostRig();
  HostRig(const HostRig&) = delete;
  HostRig& operator=(const HostRig&) = delete;

  void start_host();
  /// Starts a thread that acts as a client with a gate of its own.
  void start_client(std::uint32_t id, Turn turn, std::function<void(GateClient&)> work);
  [[nodiscard]] std::unique_ptr<GateClient> open(std::uint32_t id,
                                                 Duration patience = std::chrono::seconds(1));
  /// Adds to the log of the client threads, of which one runs at a time.
  void note(const std::string& what);
  /// Lets all threads run until `end`, then ends the host.
  void run_until(Duration end);

  std::unique_ptr<HostClock> clock;
  std::unique_ptr<ClockPart> part;
  ScriptedPolicy policy;
  policy::PolicySpec spec;
  std::unique_ptr<PolicyHost> host;
  std::vector<std::string> log;

 private:
  std::unique_ptr<Crew> crew_;
};

[[nodiscard]] inline policy::LaunchInfo kernel(std::uint64_t blocks = 1) {
  policy::LaunchInfo info;
  info.blocks = blocks;
  return info;
}

}  // namespace bubblesim::capture

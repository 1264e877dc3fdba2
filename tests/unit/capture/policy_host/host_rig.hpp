// A policy host on a TurnClock, with a policy made of functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/base/check.hpp"
#include "sim/base/units.hpp"
#include "tests/unit/capture/clock/host_instant.hpp"

namespace bubblesim::capture {

inline constexpr ClientId kFiller{1};

inline std::string number(ClientId client, std::uint64_t launch) {
  return std::to_string(client.value) + "." + std::to_string(launch);
}

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

  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {};
  }
  policy::Verdict on_launch(const policy::LaunchInfo& info, Instant now,
                            Actions& actions) override {
    note(now, "launch " + number(info.client, info.launch));
    launches.push_back(info);
    return launch ? launch(info, now, actions) : policy::Verdict::kAdmit;
  }
  void on_completion(const policy::CompletionInfo& info, Instant now, Actions& actions) override {
    note(now, "completion " + number(info.client, info.launch));
    if (completion) completion(info, now, actions);
  }
  void on_bubble_begin(const policy::BubbleInfo& info, Instant now, Actions&) override {
    note(now, "bubble of " + format_duration(info.expected));
  }
  void on_bubble_end(Instant now, Actions&) override { note(now, "bubble ends"); }
  void on_iteration(const policy::IterationInfo& info, Instant now, Actions&) override {
    note(now,
         "iteration " + number(info.client, info.number) + " of " + format_duration(info.length));
  }
  void on_gone(ClientId client, Instant now, Actions& actions) override {
    note(now,
         "gone " + std::to_string(client.value) + ", held " + std::to_string(actions.held(client)));
  }
  [[nodiscard]] std::optional<Instant> next_tick() const override { return next; }
  void on_tick(Instant now, Actions& actions) override {
    note(now, "tick");
    if (ticks) ticks(now, actions);
  }
  void add_counts(CounterSet& counters) const override {
    counters.add({"scripted", Severity::kInfo, "of a test"}, log.size());
  }

 private:
  void note(Instant now, const std::string& what) {
    log.push_back(format_duration(now) + " " + what);
  }
};

/// Client 0's gate has mode `first`, the others ask. The calling thread is the controller.
class HostRig {
 public:
  explicit HostRig(policy::Needs needs = {}, std::uint32_t clients = 2,
                   GateMode first = GateMode::kTell, std::uint32_t window = 0)
      : clock(*make_turn_clock()), part(clock->join(Turn::kControl)) {
    spec.name = "scripted";
    spec.needs = needs;
    PolicyHostSetup setup{&spec, &policy, {}, {}, policy::SharingMode::kTimeSliced};
    for (std::uint32_t i = 0; i < clients; ++i) {
      setup.clients.push_back({Bytes{100}, i == 0 ? first : GateMode::kAsk, i == 0 ? 0 : window});
    }
    auto made = PolicyHost::make(*clock, std::move(setup));
    BUBBLESIM_CHECK(made.has_value(), "no policy host");
    host = std::move(*made);
    crew_ = std::make_unique<Crew>(*clock);
  }
  ~HostRig() {
    host->stop();
    crew_.reset();
  }
  HostRig(const HostRig&) = delete;
  HostRig& operator=(const HostRig&) = delete;

  void start_host() {
    crew_->start(Turn::kPolicy, [this] { host->run(); });
  }
  /// Starts a thread that acts as a client with a gate of its own.
  void start_client(std::uint32_t id, Turn turn, std::function<void(GateClient&)> work) {
    crew_->start(turn, [this, id, work = std::move(work)] { work(*open(id)); });
  }
  [[nodiscard]] std::unique_ptr<GateClient> open(std::uint32_t id,
                                                 Duration patience = std::chrono::seconds(1)) {
    auto client = GateClient::open(host->gate_name(), ClientId{id}, *clock, patience);
    BUBBLESIM_CHECK(client.has_value(), "no gate client");
    return std::move(*client);
  }
  /// Adds to the log of the client threads, of which one runs at a time.
  void note(const std::string& what) {
    log.push_back(format_duration(clock->now().time_since_epoch()) + " " + what);
  }
  /// Lets all threads run until `end`, then ends the host.
  void run_until(Duration end) {
    clock->sleep_until(at(end));
    host->stop();
    crew_->wait();
  }

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

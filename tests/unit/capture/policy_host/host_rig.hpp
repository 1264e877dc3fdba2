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

inline std::string number(ClientId client, std::uint64_t launch) {
  return std::to_string(client.value) + "." + std::to_string(launch);
}

inline void ScriptedPolicy::note(Instant now, const std::string& what) {
  log.push_back(format_duration(now) + " " + what);
}

inline policy::Sharing ScriptedPolicy::start(const policy::GpuInfo&,
                                             std::span<const policy::ClientInfo>) {
  return {};
}

inline policy::Verdict ScriptedPolicy::on_launch(const policy::LaunchInfo& info, Instant now,
                                                 Actions& actions) {
  note(now, "launch " + number(info.client, info.launch));
  launches.push_back(info);
  return launch ? launch(info, now, actions) : policy::Verdict::kAdmit;
}

inline void ScriptedPolicy::on_completion(const policy::CompletionInfo& info, Instant now,
                                          Actions& actions) {
  note(now, "completion " + number(info.client, info.launch));
  if (completion) completion(info, now, actions);
}

inline void ScriptedPolicy::on_bubble_begin(const policy::BubbleInfo& info, Instant now, Actions&) {
  note(now, "bubble of " + format_duration(info.expected));
}

inline void ScriptedPolicy::on_bubble_end(Instant now, Actions&) { note(now, "bubble ends"); }

inline void ScriptedPolicy::on_iteration(const policy::IterationInfo& info, Instant now, Actions&) {
  note(now, "iteration " + number(info.client, info.number) + " of " +
                format_duration(info.length));
}

inline void ScriptedPolicy::on_gone(ClientId client, Instant now, Actions& actions) {
  note(now, "gone " + std::to_string(client.value) + ", held " +
                std::to_string(actions.held(client)));
}

inline void ScriptedPolicy::on_tick(Instant now, Actions& actions) {
  note(now, "tick");
  if (ticks) ticks(now, actions);
}

inline void ScriptedPolicy::add_counts(CounterSet& counters) const {
  counters.add({"scripted", Severity::kInfo, "of a test"}, log.size());
}

inline HostRig::HostRig(policy::Needs needs, std::uint32_t clients, GateMode first,
                        std::uint32_t window)
    : clock(*make_turn_clock()), part(clock->join(Turn::kControl)) {
  spec.name = "scripted";
  spec.needs = needs;
  PolicyHostSetup setup{&spec, &policy, {}, {}, policy::SharingMode::kTimeSliced};
  for (std::uint32_t i = 0; i < clients; ++i) {
    HostedClient client;
    client.info.id = ClientId{i};
    client.info.memory = Bytes{100};
    client.mode = i == 0 ? first : GateMode::kAsk;
    client.window = i == 0 ? 0 : window;
    setup.clients.push_back(client);
  }
  auto made = PolicyHost::make(*clock, std::move(setup));
  BUBBLESIM_CHECK(made.has_value(), "no policy host");
  host = std::move(*made);
  crew_ = std::make_unique<Crew>(*clock);
}

inline HostRig::~HostRig() {
  host->stop();
  crew_.reset();
}

inline void HostRig::start_host() {
  crew_->start(Turn::kPolicy, [this] { host->run(); });
}

inline std::unique_ptr<GateClient> HostRig::open(std::uint32_t id, Duration patience) {
  auto client = GateClient::open(host->gate_name(), ClientId{id}, *clock, patience);
  BUBBLESIM_CHECK(client.has_value(), "no gate client");
  return std::move(*client);
}

inline void HostRig::start_client(std::uint32_t id, Turn turn,
                                  std::function<void(GateClient&)> work) {
  crew_->start(turn, [this, id, work = std::move(work)] { work(*open(id)); });
}

inline void HostRig::note(const std::string& what) {
  log.push_back(format_duration(clock->now().time_since_epoch()) + " " + what);
}

inline void HostRig::run_until(Duration end) {
  clock->sleep_until(at(end));
  host->stop();
  crew_->wait();
}

}  // namespace bubblesim::capture

#include "sim/policy/testing/fake_driver.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/policy/session/outlet.hpp"
#include "sim/policy/session/session.hpp"
#include "sim/policy/session/start.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;

constexpr std::uint32_t kThreadsPerBlock = 256;

std::string_view name(Preemption how) {
  switch (how) {
    case Preemption::kAfterKernel: return "after_kernel";
    case Preemption::kAfterBlocks: return "after_blocks";
    case Preemption::kReset: return "reset";
    case Preemption::kContextSwitch: return "context_switch";
  }
  return "";
}

/// A session's outlet on which each client's operations run one after the other, and the host
/// threads that make the launches. What a policy does besides admitting and releasing is written
/// down.
class FakeDevice final : public Outlet {
 public:
  FakeDevice(const Scenario& scenario, Outcome& outcome)
      : scenario_(scenario), outcome_(outcome), clients_(1 + scenario.fillers.size()) {}

  void set_now(Instant now) { now_ = now; }
  [[nodiscard]] std::optional<Instant> next_tick() const { return tick_; }
  /// When each of the client's threads launches next; nothing while it waits or is done.
  [[nodiscard]] std::vector<std::optional<Instant>>& threads(ClientId client) {
    return clients_[client.index()].threads;
  }
  /// The client's next launch, which counts it; nothing: it has made all of its launches.
  std::optional<LaunchInfo> next_launch(ClientId id) {
    Client& client = clients_[id.index()];
    if (id.value > 0 && client.launches == scenario_.fillers[id.index() - 1].launches) {
      return std::nullopt;
    }
    const std::uint64_t index = client.launches++;
    const Call& next = call(id, index);
    LaunchInfo info{id, next.kind, next.blocks, kThreadsPerBlock, index + 1, next.length};
    info.bound = next.bound;
    info.sm_blocks = next.sm_blocks;
    info.kernel = next.function > 0 ? next.function : index % calls(id).size();
    info.waits = client.asks;
    return info;
  }
  /// When the client's first operation ends; nothing if none may end.
  std::optional<Instant> next_end(ClientId id) const {
    const Client& client = clients_[id.index()];
    if (client.device.empty()) return std::nullopt;
    const auto& [end, launch] = client.device.front();
    const bool runs = !client.off || (client.off == Preemption::kAfterKernel &&
                                      client.running == launch.launch);
    return runs ? std::optional(end + scenario_.notice) : std::nullopt;
  }
  /// Takes the operation that ends.
  LaunchInfo take_ended(ClientId id) {
    Client& client = clients_[id.index()];
    const LaunchInfo launch = client.device.front().second;
    client.device.pop_front();
    return launch;
  }
  /// The client's process has ended.
  void forget(ClientId client) {
    clients_[client.index()].device.clear();
    clients_[client.index()].threads.clear();
  }

  /// Puts the launch onto the device, behind earlier ones; the thread goes on.
  void admit(const LaunchInfo& launch, Waiter waiter, const std::optional<LaunchForm>&) override {
    const ClientId id = launch.client;
    Client& client = clients_[id.index()];
    outcome_.passed.push_back({now_, id, launch.launch, launch.blocks});
    const Instant start =
        client.device.empty() ? now_ : std::max(now_, client.device.back().first);
    client.device.emplace_back(start + call(id, launch.launch - 1).length, launch);
    if (id.value > 0) {
      client.threads[waiter] = now_ + scenario_.fillers[id.index() - 1].gap;
    } else if (client.launches < scenario_.training.size()) {
      client.threads[waiter] = std::max(now_, scenario_.training[client.launches].at);
    }
  }
  void hold(const HeldLaunch& launch) override {
    if (launch.info.client.value == 0) ++outcome_.training_held;
  }
  void release(const HeldLaunch& launch, const std::optional<LaunchForm>& form,
               Instant) override {
    admit(launch.info, launch.waiter, form);
  }
  Refusal cap(ClientId client, std::uint32_t percentage) override {
    return note("percentage", client, std::to_string(percentage));
  }
  Refusal prioritise(ClientId client, std::int32_t priority) override {
    return note("priority", client, std::to_string(priority));
  }
  Refusal slice(ClientId client, Duration slice) override {
    return note("slice", client, format_duration(slice));
  }
  Refusal preempt(ClientId id, Preemption how) override {
    Client& client = clients_[id.index()];
    if (!client.off) {
      client.off_since = now_;
      client.running = client.device.empty() ? 0 : client.device.front().second.launch;
    }
    client.off = how;
    return note("preempt", id, std::string(name(how)));
  }
  Refusal proceed(ClientId id) override {
    Client& client = clients_[id.index()];
    if (client.off) restart(client);
    client.off.reset();
    return note("proceed", id, "");
  }
  Refusal reshape(ClientId client, const LaunchForm& form) override {
    return note("reshape", client, std::to_string(form.most_blocks));
  }
  Refusal move_memory(ClientId client, Bytes resident, Bytes) override {
    return note("resident", client, format_bytes(resident));
  }
  Refusal set_asking(ClientId client, bool asks) override {
    clients_[client.index()].asks = asks;
    return note("asking", client, asks ? "asks" : "tells");
  }
  void arm_tick(std::optional<Instant> next, Instant) override { tick_ = next; }

 private:
  struct Client {
    std::deque<std::pair<Instant, LaunchInfo>> device;  ///< by end
    std::uint64_t launches = 0;
    std::vector<std::optional<Instant>> threads;
    std::optional<Preemption> off;  ///< the device, since `off_since`
    bool asks = true;
    std::uint64_t running = 0;      ///< the launch that was on the device then
    Instant off_since{};
  };

  [[nodiscard]] const std::vector<Call>& calls(ClientId client) const {
    return client.value == 0 ? scenario_.training : scenario_.fillers[client.index() - 1].kernels;
  }
  [[nodiscard]] const Call& call(ClientId client, std::uint64_t index) const {
    return calls(client)[index % calls(client).size()];
  }
  Refusal note(std::string_view what, ClientId id, const std::string& detail) {
    const std::string tail = detail.empty() ? "" : " " + detail;
    outcome_.done.push_back({now_, std::string(what) + " " + std::to_string(id.value) + tail});
    return {};
  }
  /// What was stopped goes on where it was, or from its beginning after a reset.
  void restart(Client& client) {
    const Duration stopped = now_ - client.off_since;
    Instant before{};
    for (std::size_t i = 0; i < client.device.size(); ++i) {
      auto& [end, launch] = client.device[i];
      const Duration length = call(launch.client, launch.launch - 1).length;
      if (i == 0 && client.off == Preemption::kReset) {
        end = now_ + length;
      } else if (i == 0 && client.off == Preemption::kAfterKernel) {
        end = std::max(end, now_);
      } else {
        end = i == 0 ? end + stopped : before + length;
      }
      before = end;
    }
  }

  const Scenario& scenario_;
  Outcome& outcome_;
  std::vector<Client> clients_;
  Instant now_{};
  std::optional<Instant> tick_;
};

class Driver {
 public:
  Driver(Policy& policy, const PolicySpec& spec, const Scenario& scenario)
      : policy_(policy), spec_(spec), scenario_(scenario), device_(scenario, outcome_) {}

  Outcome run() {
    auto decided = start_policy(spec_, policy_, scenario_.gpu, client_infos());
    if (!decided) return fault(decided.error());
    begin(*std::move(decided));
    while (step() && !session_->fault()) {
    }
    if (session_->fault()) return fault(*session_->fault());
    for (const ClientId client : clients_) {
      outcome_.held_at_end.push_back(session_->held(client));
    }
    policy_.add_counts(outcome_.counts);
    return std::move(outcome_);
  }

 private:
  Outcome fault(const Error& error) {
    outcome_.faults.push_back(error.message);
    return std::move(outcome_);
  }

  [[nodiscard]] std::vector<ClientInfo> client_infos() const {
    std::vector<ClientInfo> infos{{ClientId{0}, scenario_.training_role, "training",
                                   scenario_.training_memory,
                                   scenario_.training_memory != Bytes{}}};
    infos.front().ranks = scenario_.training_ranks;
    for (const Filler& filler : scenario_.fillers) {
      const auto id = static_cast<std::uint32_t>(infos.size());
      infos.push_back({ClientId{id}, filler.role, "filler", filler.memory, filler.memory_known});
      for (std::uint64_t i = 0; spec_.needs.kernel_durations && i < filler.pass; ++i) {
        infos.back().pass += filler.kernels[i % filler.kernels.size()].length;
      }
    }
    return infos;
  }

  void begin(StartDecisions decided) {
    const bool turns = decided.sharing.mode == SharingMode::kTimeSliced;
    session_.emplace(spec_, policy_, device_, turns);
    for (std::uint32_t id = 0; id < decided.admissions.size(); ++id) {
      const bool admitted = decided.admissions[id].admitted;
      const Bytes memory =
          id == 0 ? scenario_.training_memory : scenario_.fillers[id - 1].memory;
      session_->add_client({memory, decided.resident[id], admitted});
      clients_.push_back(ClientId{id});
      if (id > 0 && admitted && scenario_.fillers[id - 1].launches > 0) {
        const Filler& filler = scenario_.fillers[id - 1];
        device_.threads(ClientId{id}).assign(filler.threads, filler.begins);
      }
    }
    if (!scenario_.training.empty()) device_.threads(ClientId{0}) = {scenario_.training[0].at};
    pass_began_.resize(clients_.size());
    outcome_.sharing = decided.sharing;
    outcome_.clients = std::move(decided.shares);
    outcome_.admissions.assign(decided.admissions.begin() + 1, decided.admissions.end());
    session_->begin(Instant{});
  }

  /// The next of all that can happen. At one instant: deaths, iteration ends, bubble end, bubble
  /// begin, completions, launches by client, tick.
  bool step() {
    const std::optional<Instant> at = next_instant();
    if (!at || *at >= scenario_.horizon) return false;
    now_ = *at;
    device_.set_now(now_);
    return death() || iteration() || bubble_edge() || complete() || launch() || wake();
  }

  [[nodiscard]] std::optional<Instant> next_instant() {
    std::optional<Instant> at;
    const auto earlier = [&at](std::optional<Instant> other) {
      if (other && (!at || *other < *at)) at = other;
    };
    const auto& bubbles = scenario_.bubbles;
    if (bubble_ < bubbles.size()) {
      earlier(in_bubble_ ? bubbles[bubble_].end : bubbles[bubble_].begin);
    }
    for (const ClientId client : clients_) {
      earlier(device_.next_end(client));
      for (const auto& thread : device_.threads(client)) earlier(thread);
      if (may_die(client)) earlier(scenario_.fillers[client.index() - 1].dies_at);
    }
    const auto& ends = scenario_.iteration_ends;
    if (iteration_ < ends.size()) earlier(ends[iteration_]);
    if (const auto tick = device_.next_tick()) earlier(std::max(*tick, now_));
    return at;
  }

  [[nodiscard]] bool may_die(ClientId client) const {
    return client.value > 0 && outcome_.admissions[client.index() - 1].admitted &&
           !session_->is_gone(client);
  }

  bool death() {
    for (const ClientId client : clients_) {
      if (!may_die(client)) continue;
      const auto& dies = scenario_.fillers[client.index() - 1].dies_at;
      if (!dies || *dies > now_) continue;
      device_.forget(client);
      session_->on_gone(client, now_);
      return true;
    }
    return false;
  }

  bool iteration() {
    const auto& ends = scenario_.iteration_ends;
    if (iteration_ >= ends.size() || ends[iteration_] > now_) return false;
    const Instant before = iteration_ == 0 ? Instant{} : ends[iteration_ - 1];
    const Duration length = ends[iteration_++] - before;
    session_->on_iteration(ClientId{0}, length, now_);
    return true;
  }

  bool bubble_edge() {
    if (bubble_ >= scenario_.bubbles.size()) return false;
    const ScenarioBubble& bubble = scenario_.bubbles[bubble_];
    if (in_bubble_ && bubble.end <= now_) {
      in_bubble_ = false;
      ++bubble_;
      session_->on_bubble_end(now_);
      return true;
    }
    if (in_bubble_ || bubble.begin > now_) return false;
    in_bubble_ = true;
    session_->on_bubble_begin(bubble.info, now_);
    return true;
  }

  bool complete() {
    for (const ClientId client : clients_) {
      const auto end = device_.next_end(client);
      if (!end || *end > now_) continue;
      const LaunchInfo launch = device_.take_ended(client);
      session_->on_completion({launch.client, launch.kind, launch.launch}, now_);
      end_pass(launch);
      return true;
    }
    return false;
  }

  /// Launches of a pass of the client; 0: its passes have no marks.
  [[nodiscard]] std::uint64_t pass_length(ClientId client) const {
    return client.value == 0 ? 0 : scenario_.fillers[client.index() - 1].pass;
  }

  void end_pass(const LaunchInfo& last) {
    const std::uint64_t length = pass_length(last.client);
    if (length == 0 || last.launch % length != 0) return;
    session_->on_iteration(last.client, now_ - pass_began_[last.client.index()], now_);
  }

  bool launch() {
    for (const ClientId client : clients_) {
      auto& threads = device_.threads(client);
      for (std::size_t thread = 0; thread < threads.size(); ++thread) {
        if (!threads[thread] || *threads[thread] > now_) continue;
        threads[thread].reset();
        launch(client, thread);
        return true;
      }
    }
    return false;
  }

  void launch(ClientId client, std::size_t thread) {
    const std::optional<LaunchInfo> info = device_.next_launch(client);
    if (!info) return;
    const std::uint64_t length = pass_length(client);
    if (length > 0 && info->launch % length == 1 % length) pass_began_[client.index()] = now_;
    session_->on_launch(LaunchInfo(*info), thread, now_);
  }

  bool wake() {
    ++outcome_.ticks;
    session_->on_tick(now_);
    return true;
  }

  Policy& policy_;
  const PolicySpec& spec_;
  const Scenario& scenario_;
  Outcome outcome_;
  FakeDevice device_;
  std::optional<Session<FakeDevice>> session_;
  std::vector<ClientId> clients_;
  std::vector<Instant> pass_began_;  ///< by client
  Instant now_{};
  std::size_t bubble_ = 0;
  std::size_t iteration_ = 0;
  bool in_bubble_ = false;
};

}  // namespace

std::size_t Outcome::count(std::uint32_t client, Duration from, Duration to) const {
  return static_cast<std::size_t>(std::ranges::count_if(passed, [&](const Passed& launch) {
    return launch.client.value == client && launch.at >= from && launch.at < to;
  }));
}

std::vector<Instant> Outcome::times(std::uint32_t client) const {
  std::vector<Instant> times;
  for (const Passed& launch : passed) {
    if (launch.client.value == client) times.push_back(launch.at);
  }
  return times;
}

Outcome drive(Policy& policy, const PolicySpec& spec, const Scenario& scenario) {
  return Driver(policy, spec, scenario).run();
}

Outcome drive(const PolicySpec& spec, const std::vector<std::string>& given,
              const Scenario& scenario) {
  std::vector<GivenParameter> parameters;
  for (std::string_view text : given) {
    const auto equals = text.find('=');
    BUBBLESIM_CHECK(equals != std::string_view::npos, "expected name=value");
    parameters.push_back({text.substr(0, equals), std::string(text.substr(equals + 1))});
  }
  const auto values = check_parameters(spec, parameters, "", "");
  BUBBLESIM_CHECK(values.has_value(), values.error().front().text());
  const auto policy = make_policy(spec, *values);
  if (policy) return drive(**policy, spec, scenario);
  Outcome outcome;
  outcome.faults.push_back(policy.error().message);
  return outcome;
}

}  // namespace bubblesim::testing

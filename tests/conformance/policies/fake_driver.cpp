#include "tests/conformance/policies/fake_driver.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include "policies/builtin.hpp"
#include "sim/base/check.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::testing {
namespace {

using namespace policy;

/// More ticks than this at one instant are a livelock.
constexpr int kMostTicksAtOnce = 100;

/// A launch, and the host thread that makes it.
struct Held {
  LaunchInfo launch;
  std::size_t thread = 0;
};

struct Client {
  std::deque<Held> held;
  std::deque<std::pair<Instant, LaunchInfo>> device;  ///< end and launch, in order
  std::uint64_t launches = 0;
  std::vector<std::optional<Instant>> threads;  ///< when each launches next
  bool admitted = true;
};

class Driver final : public Actions {
 public:
  Driver(Policy& policy, const Needs& needs, const Scenario& scenario)
      : policy_(policy), needs_(needs), scenario_(scenario) {}

  Outcome run() {
    start();
    while (step()) {
    }
    for (const Client& client : clients_) outcome_.held_at_end.push_back(client.held.size());
    policy_.add_counts(outcome_.counts);
    return std::move(outcome_);
  }

  void release(ClientId id) override {
    if (id.index() >= clients_.size() || clients_[id.index()].held.empty()) {
      outcome_.faults.push_back("release of a client that is not held");
      return;
    }
    Client& client = clients_[id.index()];
    const Held held = client.held.front();
    client.held.pop_front();
    pass(held.launch, held.thread);
  }
  std::size_t held(ClientId id) const override { return clients_[id.index()].held.size(); }
  const LaunchInfo& oldest_held(ClientId id) const override {
    return clients_[id.index()].held.front().launch;
  }
  void set_sm_percentage(ClientId, std::uint32_t percentage) override {
    if (percentage < 1 || percentage > 100) outcome_.faults.push_back("percentage out of range");
  }
  void set_priority(ClientId, std::int32_t) override {}

 private:
  void start() {
    std::vector<ClientInfo> infos{{ClientId{0}, Role::kTraining, "training",
                                   scenario_.training_memory,
                                   scenario_.training_memory != Bytes{}}};
    for (const Filler& filler : scenario_.fillers) {
      const auto id = static_cast<std::uint32_t>(infos.size());
      infos.push_back({ClientId{id}, filler.role, "filler", filler.memory, filler.memory_known});
    }
    clients_.resize(infos.size());
    outcome_.sharing = policy_.start(scenario_.gpu, infos);
    for (const ClientInfo& info : infos) outcome_.clients.push_back(policy_.share(info));
    Bytes used = scenario_.training_memory;
    for (std::size_t id = 1; id < infos.size(); ++id) {
      outcome_.admissions.push_back(policy_.admit(infos[id], used, scenario_.gpu));
      clients_[id].admitted = outcome_.admissions.back().admitted;
      if (clients_[id].admitted) used = used + infos[id].memory;
      const Filler& filler = scenario_.fillers[id - 1];
      if (clients_[id].admitted && filler.launches > 0) {
        clients_[id].threads.assign(filler.threads, Instant{});
      }
    }
    if (!scenario_.training.empty()) clients_[0].threads = {scenario_.training[0].at};
  }

  /// The next of all that can happen. At one instant: bubble end, bubble begin, completions,
  /// launches by client, tick.
  bool step() {
    std::optional<Instant> at;
    const auto earlier = [&at](std::optional<Instant> other) {
      if (other && (!at || *other < *at)) at = other;
    };
    const auto& bubbles = scenario_.bubbles;
    if (bubble_ < bubbles.size()) {
      earlier(in_bubble_ ? bubbles[bubble_].end : bubbles[bubble_].begin);
    }
    for (const Client& client : clients_) {
      if (!client.device.empty()) earlier(client.device.front().first);
      for (const auto& thread : client.threads) earlier(thread);
    }
    const auto tick = policy_.next_tick();
    if (tick) earlier(std::max(*tick, now_));
    if (!at || *at >= scenario_.horizon) return false;
    if (*at > now_) ticks_at_once_ = 0;
    now_ = *at;
    return bubble_edge() || complete() || launch() || wake();
  }

  bool bubble_edge() {
    if (bubble_ >= scenario_.bubbles.size()) return false;
    const Bubble& bubble = scenario_.bubbles[bubble_];
    if (in_bubble_ && bubble.end <= now_) {
      in_bubble_ = false;
      ++bubble_;
      if (needs_.bubbles) policy_.on_bubble_end(now_, *this);
      return true;
    }
    if (in_bubble_ || bubble.begin > now_) return false;
    in_bubble_ = true;
    if (needs_.bubbles) policy_.on_bubble_begin(bubble.info, now_, *this);
    return true;
  }

  bool complete() {
    for (Client& client : clients_) {
      if (client.device.empty() || client.device.front().first > now_) continue;
      const LaunchInfo launch = client.device.front().second;
      client.device.pop_front();
      if (needs_.completions) {
        policy_.on_completion({launch.client, launch.kind, launch.launch}, now_, *this);
      }
      return true;
    }
    return false;
  }

  bool launch() {
    for (std::uint32_t id = 0; id < clients_.size(); ++id) {
      for (std::size_t thread = 0; thread < clients_[id].threads.size(); ++thread) {
        auto& next = clients_[id].threads[thread];
        if (!next || *next > now_) continue;
        next.reset();
        launch(id, thread);
        return true;
      }
    }
    return false;
  }

  void launch(std::uint32_t id, std::size_t thread) {
    Client& client = clients_[id];
    if (id > 0 && client.launches == scenario_.fillers[id - 1].launches) return;
    const LaunchInfo info = next_call(id, client.launches++);
    if (policy_.on_launch(info, now_, *this) == Verdict::kAdmit) return pass(info, thread);
    client.held.push_back({info, thread});
    if (id == 0) ++outcome_.training_held;
  }

  bool wake() {
    if (++ticks_at_once_ > kMostTicksAtOnce) {
      outcome_.faults.push_back("ticks do not advance");
      return false;
    }
    ++outcome_.ticks;
    policy_.on_tick(now_, *this);
    return true;
  }

  const Call& call(std::uint32_t id, std::uint64_t index) const {
    const auto& calls = id == 0 ? scenario_.training : scenario_.fillers[id - 1].kernels;
    return calls[index % calls.size()];
  }

  LaunchInfo next_call(std::uint32_t id, std::uint64_t index) const {
    const Call& next = call(id, index);
    const Duration profiled = needs_.kernel_durations && id > 0 ? next.length : Duration{};
    return {ClientId{id}, next.kind, next.blocks, 256, index + 1, profiled};
  }

  void pass(const LaunchInfo& launch, std::size_t thread) {
    const std::uint32_t id = launch.client.value;
    Client& client = clients_[id];
    outcome_.passed.push_back({now_, launch.client, launch.launch, launch.blocks});
    const Instant start = client.device.empty() ? now_ : client.device.back().first;
    client.device.emplace_back(start + call(id, launch.launch - 1).length, launch);
    if (id > 0) {
      client.threads[thread] = now_ + scenario_.fillers[id - 1].gap;
    } else if (client.launches < scenario_.training.size()) {
      client.threads[thread] = std::max(now_, scenario_.training[client.launches].at);
    }
  }

  Policy& policy_;
  Needs needs_;
  const Scenario& scenario_;
  Outcome outcome_;
  std::vector<Client> clients_;
  Instant now_{};
  std::size_t bubble_ = 0;
  bool in_bubble_ = false;
  int ticks_at_once_ = 0;
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

Outcome drive(Policy& policy, const Needs& needs, const Scenario& scenario) {
  return Driver(policy, needs, scenario).run();
}

Outcome drive(std::string_view name, const std::vector<std::string>& given,
              const Scenario& scenario) {
  Registry registry;
  policies::register_builtin(registry);
  const auto spec = registry.find(name);
  BUBBLESIM_CHECK(spec.has_value(), "no such policy");
  std::vector<GivenParameter> parameters;
  for (std::string_view text : given) {
    const auto equals = text.find('=');
    parameters.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  const auto values = check_parameters(**spec, parameters, "", "");
  BUBBLESIM_CHECK(values.has_value(), values.error().front().text());
  return drive(*(*spec)->make(*values), (*spec)->needs, scenario);
}

}  // namespace bubblesim::testing

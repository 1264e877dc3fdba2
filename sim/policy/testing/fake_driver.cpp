#include "sim/policy/testing/fake_driver.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"
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
  bool dead = false;
  std::optional<Preemption> off;  ///< the device, since `off_since`
  std::uint64_t running = 0;      ///< the launch that was on the device then
  Instant off_since{};
  Instant pass_began{};
};

std::string_view name(Preemption how) {
  switch (how) {
    case Preemption::kAfterKernel: return "after_kernel";
    case Preemption::kAfterBlocks: return "after_blocks";
    case Preemption::kReset: return "reset";
    case Preemption::kContextSwitch: return "context_switch";
  }
  return "";
}

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
  void set_sm_percentage(ClientId id, std::uint32_t percentage) override {
    if (percentage < 1 || percentage > 100) outcome_.faults.push_back("percentage out of range");
    note("percentage", id, std::to_string(percentage));
  }
  void set_priority(ClientId id, std::int32_t priority) override {
    note("priority", id, std::to_string(priority));
  }
  void set_time_slice(ClientId id, Duration slice) override {
    if (outcome_.sharing.mode != SharingMode::kTimeSliced) {
      outcome_.faults.push_back("a slice without time slices");
    }
    if (slice <= Duration{}) outcome_.faults.push_back("a slice without length");
    note("slice", id, format_duration(slice));
  }
  void preempt(ClientId id, Preemption how) override {
    if (how == Preemption::kContextSwitch &&
        outcome_.sharing.mode != SharingMode::kTimeSliced) {
      outcome_.faults.push_back("a context switch without time slices");
    }
    note("preempt", id, std::string(name(how)));
    Client& client = clients_[id.index()];
    if (!client.off) {
      client.off_since = now_;
      client.running = client.device.empty() ? 0 : client.device.front().second.launch;
    }
    client.off = how;
  }
  void proceed(ClientId id) override {
    note("proceed", id, "");
    Client& client = clients_[id.index()];
    if (!client.off) return;
    restart(client);
    client.off.reset();
  }
  void reshape(ClientId id, const LaunchForm& form) override {
    if (form.slowdown < 1) outcome_.faults.push_back("a form that is faster");
    note("reshape", id, std::to_string(form.most_blocks));
  }
  void set_resident_memory(ClientId id, Bytes resident) override {
    note("resident", id, format_bytes(resident));
  }

 private:
  void note(std::string_view what, ClientId id, const std::string& detail) {
    if (id.index() >= clients_.size()) outcome_.faults.push_back("no such client");
    const std::string tail = detail.empty() ? "" : " " + detail;
    outcome_.done.push_back({now_, std::string(what) + " " + std::to_string(id.value) + tail});
  }

  /// What was stopped goes on where it was, or from its beginning after a reset.
  void restart(Client& client) {
    const Duration stopped = now_ - client.off_since;
    Instant before{};
    for (std::size_t i = 0; i < client.device.size(); ++i) {
      auto& [end, launch] = client.device[i];
      const Duration length = call(launch.client.value, launch.launch - 1).length;
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

  /// Whether the client's first operation may end.
  [[nodiscard]] static bool runs(const Client& client) {
    if (client.device.empty()) return false;
    if (!client.off) return true;
    return client.off == Preemption::kAfterKernel &&
           client.running == client.device.front().second.launch;
  }

  void start() {
    std::vector<ClientInfo> infos{{ClientId{0}, scenario_.training_role, "training",
                                   scenario_.training_memory,
                                   scenario_.training_memory != Bytes{}}};
    for (const Filler& filler : scenario_.fillers) {
      const auto id = static_cast<std::uint32_t>(infos.size());
      infos.push_back({ClientId{id}, filler.role, "filler", filler.memory, filler.memory_known});
      for (std::uint64_t i = 0; needs_.kernel_durations && i < filler.pass; ++i) {
        infos.back().pass += filler.kernels[i % filler.kernels.size()].length;
      }
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
      if (runs(client)) earlier(client.device.front().first);
      for (const auto& thread : client.threads) earlier(thread);
    }
    for (std::size_t id = 1; id < clients_.size(); ++id) {
      if (clients_[id].admitted && !clients_[id].dead) earlier(scenario_.fillers[id - 1].dies_at);
    }
    const auto& ends = scenario_.iteration_ends;
    if (iteration_ < ends.size()) earlier(ends[iteration_]);
    const auto tick = policy_.next_tick();
    if (tick) earlier(std::max(*tick, now_));
    if (!at || *at >= scenario_.horizon) return false;
    if (*at > now_) ticks_at_once_ = 0;
    now_ = *at;
    return death() || iteration() || bubble_edge() || complete() || launch() || wake();
  }

  bool death() {
    for (std::uint32_t id = 1; id < clients_.size(); ++id) {
      Client& client = clients_[id];
      const auto& dies = scenario_.fillers[id - 1].dies_at;
      if (client.dead || !client.admitted || !dies || *dies > now_) continue;
      client.dead = true;
      client.held.clear();
      client.device.clear();
      client.threads.clear();
      policy_.on_gone(ClientId{id}, now_, *this);
      return true;
    }
    return false;
  }

  bool iteration() {
    const auto& ends = scenario_.iteration_ends;
    if (iteration_ >= ends.size() || ends[iteration_] > now_) return false;
    const Instant before = iteration_ == 0 ? Instant{} : ends[iteration_ - 1];
    const IterationInfo info{ClientId{0}, iteration_ + 1, ends[iteration_] - before};
    ++iteration_;
    if (needs_.iterations) policy_.on_iteration(info, now_, *this);
    return true;
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
      if (!runs(client) || client.device.front().first > now_) continue;
      const LaunchInfo launch = client.device.front().second;
      client.device.pop_front();
      if (needs_.completions) {
        policy_.on_completion({launch.client, launch.kind, launch.launch}, now_, *this);
      }
      end_pass(launch);
      return true;
    }
    return false;
  }

  void end_pass(const LaunchInfo& last) {
    const std::uint32_t id = last.client.value;
    const std::uint64_t length = id == 0 ? 0 : scenario_.fillers[id - 1].pass;
    if (length == 0 || last.launch % length != 0 || !needs_.iterations) return;
    const IterationInfo info{last.client, last.launch / length, now_ - clients_[id].pass_began};
    policy_.on_iteration(info, now_, *this);
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
    const std::uint64_t length = id == 0 ? 0 : scenario_.fillers[id - 1].pass;
    if (length > 0 && info.launch % length == 1 % length) client.pass_began = now_;
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
    LaunchInfo info{ClientId{id}, next.kind, next.blocks, 256, index + 1, {}};
    if (needs_.kernel_durations) info.profiled = next.length;
    if (needs_.kernel_classes) info.bound = next.bound;
    info.sm_blocks = next.sm_blocks;
    const auto& calls = id == 0 ? scenario_.training : scenario_.fillers[id - 1].kernels;
    info.kernel = index % calls.size();
    return info;
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
  std::size_t iteration_ = 0;
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

Outcome drive(const PolicySpec& spec, const std::vector<std::string>& given,
              const Scenario& scenario) {
  std::vector<GivenParameter> parameters;
  for (std::string_view text : given) {
    const auto equals = text.find('=');
    BUBBLESIM_CHECK(equals != std::string_view::npos, "expected name=value");
    parameters.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  const auto values = check_parameters(spec, parameters, "", "");
  BUBBLESIM_CHECK(values.has_value(), values.error().front().text());
  return drive(*spec.make(*values), spec.needs, scenario);
}

}  // namespace bubblesim::testing

// A policy that logs its calls and holds the filler's launches until the test releases them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "tests/fault.hpp"

namespace bubblesim::capture {

class ScriptedPolicy final : public policy::Policy {
 public:
  struct Heard {
    std::vector<policy::LaunchInfo> launches;
    std::vector<policy::CompletionInfo> completions;
    std::vector<policy::IterationInfo> iterations;
    std::size_t most_outstanding = 0;  ///< launches not yet completed, the asking one included
  };

  /// Releases so many more launches of client 1; later ones are held. From any thread.
  void let_go(std::uint64_t launches) { allowed_ += launches; }
  /// The next on_completion() takes so long.
  void stall(std::chrono::milliseconds span) { stall_ = span; }
  [[nodiscard]] Heard heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  [[nodiscard]] std::size_t launches() const { return heard().launches.size(); }

  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {program::SharingMode::kTimeSliced};
  }
  policy::Verdict on_launch(const policy::LaunchInfo& launch, policy::Instant,
                            policy::Actions&) override {
    const std::lock_guard lock(mutex_);
    heard_.launches.push_back(launch);
    heard_.most_outstanding =
        std::max(heard_.most_outstanding, heard_.launches.size() - heard_.completions.size());
    if (launch.client.value == 0) return policy::Verdict::kAdmit;
    if (passed_ >= allowed_) return policy::Verdict::kHold;
    ++passed_;
    return policy::Verdict::kAdmit;
  }
  void on_completion(const policy::CompletionInfo& completion, policy::Instant,
                     policy::Actions&) override {
    std::this_thread::sleep_for(stall_.exchange({}));
    const std::lock_guard lock(mutex_);
    heard_.completions.push_back(completion);
  }
  void on_iteration(const policy::IterationInfo& iteration, policy::Instant,
                    policy::Actions&) override {
    const std::lock_guard lock(mutex_);
    heard_.iterations.push_back(iteration);
  }
  [[nodiscard]] std::optional<policy::Instant> next_tick() const override { return tick_; }
  void on_tick(policy::Instant now, policy::Actions& actions) override {
    const std::lock_guard lock(mutex_);
    tick_ = now + std::chrono::milliseconds(1);
    while (passed_ < allowed_ && actions.held(ClientId{1}) > 0) {
      ++passed_;
      actions.release(ClientId{1});
    }
  }

 private:
  mutable std::mutex mutex_;
  Heard heard_;
  std::uint64_t passed_ = 0;
  std::atomic<std::uint64_t> allowed_{0};
  std::atomic<std::chrono::milliseconds> stall_{};
  policy::Instant tick_ = std::chrono::milliseconds(1);
};

inline constexpr std::uint64_t kAllLaunches = 1U << 30;

/// Its declaration: it needs completions and iterations.
inline policy::PolicySpec scripted_spec() {
  policy::PolicySpec spec;
  spec.name = "scripted";
  spec.needs = {.completions = true, .iterations = true};
  spec.make = [](const policy::ParameterSet&) { return std::make_unique<ScriptedPolicy>(); };
  return spec;
}

/// A host of the scripted policy, in a thread of its own, for training (0) and a filler (1).
class ScriptedHost {
 public:
  explicit ScriptedHost(std::uint32_t window = 0, bool one_gpu = true) {
    part_ = clock_->join(Turn::kControl);
    PolicyHostSetup setup;
    setup.spec = &spec_;
    setup.policy = &policy;
    setup.origin = clock_->now();
    setup.one_gpu = one_gpu;
    setup.clients = {{{}, GateMode::kTell}, {{}, GateMode::kAsk, window}};
    host = must(PolicyHost::make(*clock_, std::move(setup)));
    crew_ = std::make_unique<Crew>(*clock_);
    crew_->start(Turn::kPolicy, [this] { host->run(); });
  }
  ~ScriptedHost() { stop(); }
  ScriptedHost(const ScriptedHost&) = delete;
  ScriptedHost& operator=(const ScriptedHost&) = delete;

  void stop() {
    host->stop();
    crew_->wait();
  }

  ScriptedPolicy policy;
  std::unique_ptr<PolicyHost> host;

 private:
  policy::PolicySpec spec_ = scripted_spec();
  std::unique_ptr<HostClock> clock_ = wall_clock();
  std::unique_ptr<ClockPart> part_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace bubblesim::capture

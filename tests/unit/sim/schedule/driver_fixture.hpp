// Programs on one GPU behind a policy that the test scripts. Times in us.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/policy/declaration.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::schedule {

using policy::Verdict;
using workload::ProgramMaker, workload::RunRecorder, workload::Spans, workload::us;

/// Follows a test's functions, and logs its calls.
class ScriptedPolicy final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo& gpu,
                        std::span<const policy::ClientInfo> clients) override {
    seen_gpu = gpu;
    seen_clients = clients.size();
    return sharing;
  }
  policy::ClientSharing share(const policy::ClientInfo& client) override {
    return client.id.index() < shares.size() ? shares[client.id.index()] : policy::ClientSharing{};
  }
  policy::Admission admit(const policy::ClientInfo& filler, Bytes used,
                          const policy::GpuInfo& gpu) override {
    used_at_admission.push_back(used.value);
    return admits ? admits(filler) : Policy::admit(filler, used, gpu);
  }
  policy::Verdict on_launch(const policy::LaunchInfo& launch, policy::Instant now,
                            policy::Actions& actions) override {
    launches.push_back(launch);
    note("launch", now);
    return launch_rule ? launch_rule(launch, actions) : policy::Verdict::kAdmit;
  }
  void on_completion(const policy::CompletionInfo& completion, policy::Instant now,
                     policy::Actions& actions) override {
    completions.push_back(completion);
    note("completion", now);
    if (completion_rule) completion_rule(actions);
  }
  void on_bubble_begin(const policy::BubbleInfo& bubble, policy::Instant now,
                       policy::Actions& actions) override {
    bubbles.push_back(bubble);
    note("bubble", now);
    if (bubble_rule) bubble_rule(actions);
  }
  void on_bubble_end(policy::Instant now, policy::Actions&) override { note("end", now); }
  [[nodiscard]] std::optional<policy::Instant> next_tick() const override {
    if (ticks.empty()) return std::nullopt;
    return ticks.front();
  }
  void on_tick(policy::Instant now, policy::Actions& actions) override {
    ticks.erase(ticks.begin());
    note("tick", now);
    if (tick_rule) tick_rule(actions);
    note("tick done", now);
  }

  /// Every call, in order, with its instant in us.
  std::vector<std::pair<std::string, std::int64_t>> calls;

  policy::Sharing sharing;
  std::vector<policy::ClientSharing> shares;
  std::function<policy::Admission(const policy::ClientInfo&)> admits;
  std::function<policy::Verdict(const policy::LaunchInfo&, policy::Actions&)> launch_rule;
  std::function<void(policy::Actions&)> completion_rule;
  std::function<void(policy::Actions&)> bubble_rule;
  std::function<void(policy::Actions&)> tick_rule;
  std::vector<policy::Instant> ticks;

  policy::GpuInfo seen_gpu;
  std::size_t seen_clients = 0;
  std::vector<std::uint64_t> used_at_admission;
  std::vector<policy::LaunchInfo> launches;
  std::vector<policy::CompletionInfo> completions;
  std::vector<policy::BubbleInfo> bubbles;

 private:
  void note(const std::string& what, policy::Instant now) {
    calls.emplace_back(what, to_ns(now) / 1000);
  }
};

using Calls = std::vector<std::pair<std::string, std::int64_t>>;

/// Passes the events of a run on to the driver, and records them.
class Observer final : public workload::RunObserver {
 public:
  explicit Observer(PolicyDriver& driver) : driver_(driver) {}
  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override {
    recorder.on_op_started(run, op, now);
    driver_.op_started(run, op, now);
  }
  void on_op_finished(const workload::OpRecord& record) override {
    recorder.on_op_finished(record);
    driver_.op_finished(record);
  }
  RunRecorder recorder;

 private:
  PolicyDriver& driver_;
};

class PolicyDriverTest : public testing::Test, public HoldListener {
 protected:
  PolicyDriverTest() {
    spec_.name = "fake";
    gpu_spec_.completion_notice = us(4);
  }

  /// Runs client 0 and the fillers until no event is left.
  void run(const std::vector<program::Program>& programs) {
    programs_ = programs;
    gpu_ = std::make_unique<gpu::Gpu>(engine_, gpu_spec_, sharing_);
    driver_ = std::make_unique<PolicyDriver>(engine_, *gpu_, spec_, policy_, bubbles_, this);
    for (const program::Program& program : programs_) {
      observers_.push_back(std::make_unique<Observer>(*driver_));
      workload::RunSetup setup;
      setup.repeat = workload::Repeat::kOnePass;
      setup.gate = driver_.get();
      setup.observer = observers_.back().get();
      runs_.push_back(std::make_unique<workload::ProgramRun>(engine_, *gpu_, program, setup));
      driver_->attach(runs_.back().get(), memory_, memory_, terms_);
    }
    driver_->attach(nullptr);  // a filler that was refused
    driver_->start();
    for (const auto& run : runs_) run->start_pass(kSimStart);
    engine_.run_until();
  }
  void hold_fillers();
  void at_tick(Duration when, std::function<void(policy::Actions&)> rule) {
    policy_.ticks = {when};
    policy_.tick_rule = std::move(rule);
  }
  [[nodiscard]] Spans spans(std::size_t client) const {
    return observers_[client]->recorder.spans();
  }
  [[nodiscard]] std::string fault() const {
    return driver_->session().fault() ? driver_->session().fault()->text() : "none";
  }
  void on_hold_ended(ClientId client, SimTime since, SimTime now) override {
    held_.push_back({client.value, workload::microseconds(since), workload::microseconds(now)});
  }

  engine::Engine engine_;
  hardware::GpuSpec gpu_spec_ = workload::plain_gpu();
  policy::PolicySpec spec_;
  ScriptedPolicy policy_;
  const BubbleTable* bubbles_ = nullptr;
  gpu::SharingSetup sharing_;
  policy::GateTerms terms_;  ///< of each client
  Bytes memory_;  ///< of each client, all of it on the device; 0: not known
  std::vector<program::Program> programs_;
  std::unique_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<PolicyDriver> driver_;
  std::vector<std::unique_ptr<Observer>> observers_;
  std::vector<std::unique_ptr<workload::ProgramRun>> runs_;
  std::vector<std::array<std::int64_t, 3>> held_;
};

inline program::Program one_kernel(std::int64_t called, std::int64_t duration) {
  return ProgramMaker().kernel(called, duration).end().program();
}

inline const ClientId kJob{0};
inline const ClientId kFiller{1};

inline void PolicyDriverTest::hold_fillers() {
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions&) {
    return launch.client == kFiller ? Verdict::kHold : Verdict::kAdmit;
  };
}

}  // namespace bubblesim::schedule

// Programs on one GPU behind a policy that the test scripts. Times in us.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/policy_driver.hpp"
#include "tests/unit/sim/schedule/scripted_policy.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::schedule {

using policy::Verdict;
using workload::ProgramMaker, workload::RunRecorder, workload::Spans, workload::us;

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

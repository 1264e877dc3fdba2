#include "tests/unit/capture/live/scripted_policy.hpp"

#include <algorithm>
#include <thread>

#include "tests/fault.hpp"

namespace bubblesim::capture {

ScriptedPolicy::Heard ScriptedPolicy::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

policy::Sharing ScriptedPolicy::start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) {
  return {program::SharingMode::kTimeSliced};
}

policy::Verdict ScriptedPolicy::on_launch(const policy::LaunchInfo& launch, policy::Instant,
                                          policy::Actions&) {
  const std::lock_guard lock(mutex_);
  heard_.launches.push_back(launch);
  heard_.most_outstanding = std::max(heard_.most_outstanding,
                                     heard_.launches.size() - heard_.completions.size());
  if (launch.client.value == 0) return policy::Verdict::kAdmit;
  if (passed_ >= allowed_) return policy::Verdict::kHold;
  ++passed_;
  return policy::Verdict::kAdmit;
}

void ScriptedPolicy::on_completion(const policy::CompletionInfo& completion, policy::Instant,
                                   policy::Actions&) {
  std::this_thread::sleep_for(stall_.exchange({}));
  const std::lock_guard lock(mutex_);
  heard_.completions.push_back(completion);
}

void ScriptedPolicy::on_iteration(const policy::IterationInfo& iteration, policy::Instant,
                                  policy::Actions&) {
  const std::lock_guard lock(mutex_);
  heard_.iterations.push_back(iteration);
}

void ScriptedPolicy::on_tick(policy::Instant now, policy::Actions& actions) {
  const std::lock_guard lock(mutex_);
  tick_ = now + std::chrono::milliseconds(1);
  while (passed_ < allowed_ && actions.held(ClientId{1}) > 0) {
    ++passed_;
    actions.release(ClientId{1});
  }
}

policy::PolicySpec scripted_spec() {
  policy::PolicySpec spec;
  spec.name = "scripted";
  spec.needs = {.completions = true, .iterations = true};
  spec.make = [](const policy::ParameterSet&) { return std::make_unique<ScriptedPolicy>(); };
  return spec;
}

ScriptedHost::ScriptedHost(std::uint32_t window, bool one_gpu) {
  part_ = clock_->join(Turn::kControl);
  PolicyHostSetup setup;
  setup.spec = &spec_;
  setup.policy = &policy;
  setup.origin = clock_->now();
  setup.one_gpu = one_gpu;
  for (std::uint32_t id : {0U, 1U}) {
    policy::ClientInfo info;
    info.id = ClientId{id};
    info.role = id == 0 ? policy::Role::kTraining : policy::Role::kOffline;
    setup.clients.push_back(
        {info, id == 0 ? GateMode::kTell : GateMode::kAsk, id == 0 ? 0 : window});
  }
  host = must(PolicyHost::make(*clock_, std::move(setup)));
  crew_ = std::make_unique<Crew>(*clock_);
  crew_->start(Turn::kPolicy, [this] { host->run(); });
}

}  // namespace bubblesim::capture

// A policy that follows a test's functions, and logs its calls.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::schedule {

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

}  // namespace bubblesim::schedule

// Actions that do nothing, for calls of a policy while no launch is held.
#pragma once

#include "sim/policy/policy.hpp"

namespace bubblesim::testing {

class NoActions : public policy::Actions {
 public:
  void release(ClientId) override {}
  [[nodiscard]] std::size_t held(ClientId) const override { return 0; }
  [[nodiscard]] const policy::LaunchInfo& oldest_held(ClientId) const override { return launch_; }
  void set_sm_percentage(ClientId, std::uint32_t) override {}
  void set_priority(ClientId, std::int32_t) override {}
  void set_time_slice(ClientId, Duration) override {}
  void preempt(ClientId, program::Preemption) override {}
  void proceed(ClientId) override {}
  void reshape(ClientId, const policy::LaunchForm&) override {}
  void set_resident_memory(ClientId, Bytes) override {}
  void set_asking(ClientId, bool) override {}

 private:
  policy::LaunchInfo launch_;
};

}  // namespace bubblesim::testing

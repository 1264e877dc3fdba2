// The C++ version of sim/plugin/python/examples/quiet_gate.py.
#include <set>

#include "sim/plugin/policy_library.hpp"
#include "sim/policy/declare.hpp"

namespace {

using namespace bubblesim;
using namespace bubblesim::policy;

class QuietGate final : public Policy {
 public:
  explicit QuietGate(const ParameterSet& given) : quiet_(given.duration("quiet")) {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }

  Verdict on_launch(const LaunchInfo& launch, Instant now, Actions&) override {
    if (launch.client == ClientId{0}) {
      opens_ = now + quiet_;
    } else if (launch.kind == WorkKind::kKernel && now < opens_) {
      waiting_.insert(launch.client);
      return Verdict::kHold;
    }
    return Verdict::kAdmit;
  }

  std::optional<Instant> next_tick() const override {
    return waiting_.empty() ? std::nullopt : std::optional(opens_);
  }

  void on_tick(Instant now, Actions& actions) override {
    if (now < opens_) return;
    for (const ClientId client : waiting_) {
      for (std::size_t left = actions.held(client); left > 0; --left) actions.release(client);
    }
    waiting_.clear();
  }

 private:
  Duration quiet_;
  Instant opens_{};
  std::set<ClientId> waiting_;
};

PolicySpec quiet_gate_spec() {
  PolicySpec spec;
  spec.name = "quiet_gate";
  spec.summary = "Fillers launch while training is quiet";
  spec.parameters = {declare_duration("quiet", std::chrono::microseconds(100), Duration{1},
                                      std::chrono::seconds(1), {})};
  spec.make = [](const ParameterSet& given) { return std::make_unique<QuietGate>(given); };
  return spec;
}

}  // namespace

BUBBLESIM_POLICY_LIBRARY(quiet_gate_spec)

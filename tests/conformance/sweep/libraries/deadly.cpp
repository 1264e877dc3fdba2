// Policies that end the process: `aborts` as a failed check does, `killed` as the system does that
// has no memory left, `recurses` without end at its first launch after 1 ms; and `loops`, which
// never returns from it.
#include <csignal>
#include <cstdlib>

#include "sim/plugin/policy_library.hpp"

namespace {

using namespace bubblesim::policy;

template <int kSignal>
class Deadly final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override {
    if (kSignal == SIGABRT) std::abort();
    raise(kSignal);
    return {};
  }
};

volatile bool forever = true;

int depth(int above) {  // deeper than any stack
  volatile int here = above;
  return forever ? depth(above + 1) + here : 0;
}

template <bool kLoops>
class Endless final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  Verdict on_launch(const LaunchInfo&, Instant now, Actions&) override {
    if (now < std::chrono::milliseconds(1)) return Verdict::kAdmit;
    if (!kLoops) return depth(0) > 0 ? Verdict::kHold : Verdict::kAdmit;
    while (forever) {
    }
    return Verdict::kAdmit;
  }
};

template <bool kLoops>
PolicySpec endless_spec() {
  PolicySpec spec;
  spec.name = kLoops ? "loops" : "recurses";
  spec.summary = "Never returns from a launch";
  spec.needs.launches = true;
  spec.make = [](const ParameterSet&) { return std::make_unique<Endless<kLoops>>(); };
  return spec;
}

PolicySpec aborts_spec() {
  PolicySpec spec;
  spec.name = "aborts";
  spec.summary = "Ends the process as a failed check does";
  spec.make = [](const ParameterSet&) { return std::make_unique<Deadly<SIGABRT>>(); };
  return spec;
}

PolicySpec killed_spec() {
  PolicySpec spec;
  spec.name = "killed";
  spec.summary = "Ends the process as the system does";
  spec.make = [](const ParameterSet&) { return std::make_unique<Deadly<SIGKILL>>(); };
  return spec;
}

}  // namespace

BUBBLESIM_POLICY_LIBRARY(aborts_spec, killed_spec, endless_spec<true>, endless_spec<false>)

// Policies that end the process: `aborts` as a failed check does, `killed` as the system does that
// has no memory left.
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

BUBBLESIM_POLICY_LIBRARY(aborts_spec, killed_spec)

// A policy of its own, and one whose name bubblesim has.
#include "sim/plugin/policy_library.hpp"

namespace {

using namespace bubblesim::policy;

class Idle final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
};

PolicySpec named(const char* name) {
  PolicySpec spec;
  spec.name = name;
  spec.summary = "Does nothing";
  spec.make = [](const ParameterSet&) { return std::make_unique<Idle>(); };
  return spec;
}

PolicySpec fresh_spec() { return named("fresh"); }
PolicySpec mps_spec() { return named("mps"); }

}  // namespace

BUBBLESIM_POLICY_LIBRARY(fresh_spec, mps_spec)

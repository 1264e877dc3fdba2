// exclusive: the GPU belongs to training; no filler is admitted. The baseline that every training
// throughput is normalised to.
//
// Parameters: none. Ties: none arise. Source: common practice. Reconstructed: nothing.
#include <memory>

#include "policies/builtin.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

class Exclusive final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  Admission admit(const ClientInfo&, Bytes, const GpuInfo&) override {
    return {false, "exclusive: the GPU belongs to training"};
  }
};

}  // namespace

PolicySpec exclusive_spec() {
  PolicySpec spec;
  spec.name = "exclusive";
  spec.summary = "Training alone; no filler is admitted";
  spec.source = "common practice: one job a GPU";
  spec.needs.launches = false;
  spec.make = [](const ParameterSet&) { return std::make_unique<Exclusive>(); };
  return spec;
}

}  // namespace bubblesim::policies

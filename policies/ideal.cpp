// ideal and ideal_spatial: upper bounds that no real system reaches. Both are oracles: fillers cost
// training nothing, and the results say so.
//
// ideal knows every bubble: fillers run while no kernel of training but a collective runs, and stop
// in the instant when one starts. ideal_spatial also packs beside running kernels: fillers get the
// blocks and the bandwidth that training leaves. Nothing is held.
//
// No parameters. Ties: the GPU model's placement among fillers. Memory: a filler whose memory is
// known not to fit is not admitted. Source: an upper bound to compare policies with; SharingMode
// defines the simulation.
#include <memory>

#include "policies/builtin.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

class Ideal final : public Policy {
 public:
  explicit Ideal(SharingMode mode) : mode_(mode) {}
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {.mode = mode_}; }

 private:
  SharingMode mode_;
};

PolicySpec oracle(std::string name, std::string summary, SharingMode mode) {
  PolicySpec spec;
  spec.name = std::move(name);
  spec.summary = std::move(summary);
  spec.source = "upper bound";
  spec.oracle = true;
  spec.needs.launches = false;
  spec.make = [mode](const ParameterSet&) { return std::make_unique<Ideal>(mode); };
  return spec;
}

}  // namespace

PolicySpec ideal_spec() {
  return oracle("ideal", "Oracle: all of training's idle time, at no cost to it",
                SharingMode::kIdleOnly);
}

PolicySpec ideal_spatial_spec() {
  return oracle("ideal_spatial", "Oracle: all that training leaves idle in time and in space",
                SharingMode::kLeftover);
}

}  // namespace bubblesim::policies

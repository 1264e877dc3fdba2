// green_context: CUDA's green contexts. Each filler has a number of SMs and runs on no others;
// training has the rest, or may use all. Memory and its bandwidth are shared. Nothing is held.
//
// Rule: `filler_sms`, rounded up to the granularity as cuDevSmResourceSplitByCount does, are cut
// off for each filler in client order while training keeps at least one granule; a filler for which
// too few are left is not admitted. The cut is made before processes start, so training's part is
// less by the share of a filler that is refused for its memory.
//
// Parameters: see the declarations. Ties: client order. Source: CUDA driver API, green contexts
// (granularity: 2 SMs on compute capability 7.x and 8.x, 8 on 9.0). Reconstructed: filler_sms's
// default. On a GPU whose SMs are not known nothing is cut (counter). SMs are counted, not named.
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

constexpr CounterSpec kUncut{"green_context_uncut", Severity::kNotice,
                             "GPUs whose number of SMs is not known: nothing was cut off"};

class GreenContext final : public Policy {
 public:
  explicit GreenContext(const ParameterSet& given)
      : wanted_(static_cast<std::uint32_t>(given.integer("filler_sms"))),
        granularity_(static_cast<std::uint32_t>(given.integer("granularity_sms"))),
        training_has_all_(given.text("training") == "all") {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    const std::uint32_t unit = std::max(1u, granularity_ > 0 ? granularity_ : gpu.tpc_sms);
    all_ = gpu.sm_count;
    part_ = (wanted_ + unit - 1) / unit * unit;
    const std::uint32_t free = all_ > unit ? all_ - unit : 0;
    const auto fillers = static_cast<std::uint32_t>(clients.size() - 1);
    parts_ = std::min(fillers, free / part_);
    return {};
  }

  ClientSharing share(const ClientInfo& client) override {
    if (client.id != ClientId{0}) return {.sms = std::min(part_, all_)};
    return {.sms = training_has_all_ || parts_ == 0 ? 0 : all_ - parts_ * part_};
  }

  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    if (all_ == 0 || filler.id.value <= parts_) return Policy::admit(filler, used, gpu);
    return {false, "no " + std::to_string(part_) + " SMs are left beside training, the GPU has " +
                       std::to_string(all_)};
  }

  void add_counts(CounterSet& counters) const override {
    if (all_ == 0) counters.add(kUncut, 1);
  }

 private:
  std::uint32_t wanted_;
  std::uint32_t granularity_;
  bool training_has_all_;
  std::uint32_t all_ = 0;    ///< SMs of the GPU; 0: not known
  std::uint32_t part_ = 0;   ///< of each filler
  std::uint32_t parts_ = 0;  ///< fillers that have one
};

}  // namespace

PolicySpec green_context_spec() {
  PolicySpec spec;
  spec.name = "green_context";
  spec.summary = "Each filler runs on SMs of its own, training on the rest";
  spec.source = "CUDA driver API, green contexts";
  spec.parameters = {
      declare_integer("filler_sms", 32, 1, 1024,
                      {"SMs", "SMs of each filler, rounded up to the granularity.",
                       "reconstructed: a quarter of an H100"}),
      declare_integer("granularity_sms", 0, 0, 64,
                      {"SMs", "SMs are cut off in multiples of this; 0: the GPU's TPC. Compute "
                              "capability 9.0 has 8.",
                       "CUDA driver API, cuDevSmResourceSplitByCount"}),
      declare_choice("training", {"rest", "all"},
                     {"", "Training runs on what no filler has, or on every SM.",
                      "CUDA driver API: the primary context keeps all SMs unless it is cut too"}),
  };
  spec.demands = {{SystemFeature::kOneProcess}, {SystemFeature::kGreenContexts}};
  spec.not_searched = {"granularity_sms"};
  spec.needs.launches = false;
  spec.make = [](const ParameterSet& given) { return std::make_unique<GreenContext>(given); };
  return spec;
}

}  // namespace bubblesim::policies

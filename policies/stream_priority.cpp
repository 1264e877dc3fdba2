// stream_priority: training and fillers are streams of one process. Waiting blocks are placed in
// order of their stream's priority; resident ones are not evicted, so a kernel of training waits
// until fillers' blocks in its room end. Nothing is held.
//
// Parameters: which of CUDA's priorities online fillers have; offline ones, and training jobs as
// fillers, have the least, the protected client the greatest. Ties: the GPU model's block
// placement. Source: CUDA programming guide, stream priorities; Orion, EuroSys'24, uses it so.
// Reconstructed: the middle priority. One process also shares one allocator and one fault domain;
// neither is modelled.
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

constexpr std::int32_t kGreatest = 2;
constexpr std::int32_t kMiddle = 1;
constexpr std::int32_t kLeast = 0;

class StreamPriority final : public Policy {
 public:
  explicit StreamPriority(const ParameterSet& given) {
    const std::string& online = given.text("online_fillers");
    online_ = online == "greatest" ? kGreatest : online == "middle" ? kMiddle : kLeast;
  }

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  ClientSharing share(const ClientInfo& client) override {
    if (client.id == ClientId{0}) return {.priority = kGreatest};
    return {.priority = client.role == Role::kOnline ? online_ : kLeast};
  }

 private:
  std::int32_t online_ = kLeast;
};

}  // namespace

PolicySpec stream_priority_spec() {
  PolicySpec spec;
  spec.name = "stream_priority";
  spec.summary = "Streams of one process: training's waiting blocks are placed first";
  spec.source = "CUDA programming guide, stream priorities";
  spec.parameters = {
      declare_choice("online_fillers", {"least", "middle", "greatest"},
                     {"", "Priority of online fillers' streams; training's is the greatest.",
                      "CUDA: cudaDeviceGetStreamPriorityRange; the choice is reconstructed"}),
  };
  spec.demands = {{SystemFeature::kOneProcess}};
  spec.needs.launches = false;
  spec.make = [](const ParameterSet& given) { return std::make_unique<StreamPriority>(given); };
  return spec;
}

}  // namespace bubblesim::policies

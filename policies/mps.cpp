// mps: CUDA's multi-process service. Kernels of all processes are resident at the same time; blocks
// take the room that is left, in order of client priority and arrival. Nothing is held.
//
// Parameters: the active-thread percentage of training and of the fillers (a cap, no reservation;
// the GPU rounds it to whole TPCs), which of them has the higher client priority (it evicts no
// resident blocks), and how much device memory each filler may allocate (one that needs more is not
// admitted). "Training" is the protected client, also if it is a service. Ties: the GPU model's
// block placement. Source: NVIDIA MPS documentation, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE,
// CUDA_MPS_CLIENT_PRIORITY and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT. Reconstructed: nothing. Not
// modelled: the one fault domain of all clients.
#include <memory>

#include "policies/builtin.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

class Mps final : public Policy {
 public:
  explicit Mps(const ParameterSet& given) {
    const std::string& priority = given.text("priority");
    training_.sm_percentage = static_cast<std::uint32_t>(given.integer("training_percentage"));
    training_.priority = priority == "training" ? 1 : 0;
    filler_.sm_percentage = static_cast<std::uint32_t>(given.integer("filler_percentage"));
    filler_.priority = priority == "filler" ? 1 : 0;
    const auto limit = static_cast<std::uint64_t>(given.integer("filler_memory_limit_mib"));
    if (limit > 0) filler_.memory_limit = Bytes{limit << 20};
  }

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override {
    return {SharingMode::kMps};
  }
  ClientSharing share(const ClientInfo& client) override {
    return client.id == ClientId{0} ? training_ : filler_;
  }
  Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) override {
    const auto& limit = filler_.memory_limit;
    if (!limit || !filler.memory_known || filler.memory <= *limit) {
      return Policy::admit(filler, used, gpu);
    }
    return {false, "needs " + format_bytes(filler.memory) + ", a filler may have " +
                       format_bytes(*limit)};
  }

 private:
  ClientSharing training_;
  ClientSharing filler_;
};

}  // namespace

PolicySpec mps_spec() {
  PolicySpec spec;
  spec.name = "mps";
  spec.summary = "Spatial sharing: blocks go where SMs have room, nothing is held";
  spec.source = "NVIDIA Multi-Process Service documentation";
  spec.parameters = {
      declare_integer("filler_percentage", 100, 1, 100,
                      {"%", "Active-thread percentage of each filler.",
                       "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; its default is 100"}),
      declare_integer("training_percentage", 100, 1, 100,
                      {"%", "Active-thread percentage of training.",
                       "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; its default is 100"}),
      declare_choice("priority", {"none", "training", "filler"},
                     {"", "Whose waiting blocks are placed first.",
                      "CUDA_MPS_CLIENT_PRIORITY; by default all are equal"}),
      declare_integer("filler_memory_limit_mib", 0, 0, 1048576,
                      {"MiB", "Device memory that each filler may allocate; 0: no limit.",
                       "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; by default there is none"}),
  };
  spec.demands = {{SystemFeature::kMps}};
  spec.not_searched = {"filler_memory_limit_mib"};
  spec.needs.launches = false;
  spec.make = [](const ParameterSet& given) { return std::make_unique<Mps>(given); };
  return spec;
}

}  // namespace bubblesim::policies

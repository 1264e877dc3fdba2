// mps: CUDA's multi-process service. Kernels of all processes are resident at the same time;
// blocks go to what is left over, in order of client priority and arrival. Nothing is held.
//
// Parameters: the active-thread percentage of training and of the fillers (a cap, no reservation;
// the GPU rounds it to whole TPCs), and whether training has the higher client priority (resident
// blocks of fillers are not evicted by it). Ties: the GPU model's block placement.
// Source: NVIDIA MPS documentation, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and
// CUDA_MPS_CLIENT_PRIORITY. Reconstructed: nothing.
#include <memory>

#include "policies/builtin.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

class Mps final : public Policy {
 public:
  explicit Mps(const ParameterSet& given)
      : training_{static_cast<std::uint32_t>(given.integer("training_percentage")),
                  given.text("priority") == "training" ? 1 : 0},
        filler_{static_cast<std::uint32_t>(given.integer("filler_percentage")), 0} {}

  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  ClientSharing share(const ClientInfo& client) override {
    return client.role == Role::kTraining ? training_ : filler_;
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
      declare_choice("priority", {"none", "training"},
                     {"", "Whose waiting blocks are placed first.",
                      "CUDA_MPS_CLIENT_PRIORITY; by default all are equal"}),
  };
  spec.make = [](const ParameterSet& given) { return std::make_unique<Mps>(given); };
  return spec;
}

}  // namespace bubblesim::policies

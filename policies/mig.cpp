// mig: the GPU is cut into instances of SMs, memory and memory bandwidth of their own. Training has
// one, each filler another. Nothing is shared or held; no other client gets the idle part of an
// instance.
//
// Rule: training's instance is made first, then one a filler in client order while both compute and
// memory slices are left. A filler that finds too few, or whose memory is known not to fit its
// instance, is not admitted. Memory slices of a profile follow NVIDIA's table for GPUs of 7 compute
// and 8 memory slices (1g: 1, 2g: 2, 3g: 4, 4g: 4, 7g: all); on GPUs with at most as many memory
// slices as compute slices (A30), they equal the compute slices. On a GPU without MIG, or if
// training does not fit its own instance, the GPU is not cut and no filler is admitted. MIG is set
// up before processes start, so training keeps to its instance even if no filler is admitted beside
// it. Training on several GPUs is refused: instances have no peer access over NVLink or PCIe (user
// guide, limitations; NVIDIA/nccl issue 1716), and exchanges through host memory are not simulated.
//
// Parameters: the profiles of training and of the fillers. Ties: client order.
// Source: NVIDIA MIG user guide, supported profiles. Differs: only the sums of slices are checked,
// not which placements of profiles NVIDIA allows; memory slices are equal (real instances have
// slightly less).
#include <algorithm>
#include <memory>

#include "policies/builtin.hpp"
#include "sim/base/units.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

/// Compute and memory slices of one instance.
struct Profile {
  std::uint32_t compute = 0;
  std::uint32_t memory = 0;
};

/// The slices of "3g" and the like on this GPU.
Profile profile(std::string_view name, const MigGeometry& mig) {
  const auto compute = static_cast<std::uint32_t>(name.front() - '0');
  if (mig.memory_slices <= mig.compute_slices) return {compute, compute};
  if (compute >= mig.compute_slices) return {compute, mig.memory_slices};
  return {compute, compute == 3 ? 4 : compute};
}

class Mig final : public Policy {
 public:
  explicit Mig(const ParameterSet& given)
      : training_name_(given.text("training_profile")),
        filler_name_(given.text("filler_profile")) {}

  Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) override {
    geometry_ = gpu.mig;
    training_ = profile(training_name_, geometry_);
    filler_ = profile(filler_name_, geometry_);
    obstacle_ = obstacle(gpu, clients.front());
    used_ = training_;
    return {.mode = obstacle_.empty() ? SharingMode::kPartitioned : SharingMode::kSpatial};
  }

  ClientSharing share(const ClientInfo& client) override {
    if (!obstacle_.empty()) return {};
    const Profile& own = client.id == ClientId{0} ? training_ : filler_;
    return {.sms = geometry_.sms_of(std::min(own.compute, geometry_.compute_slices)),
            .memory_share =
                std::min(1.0, static_cast<double>(own.memory) / geometry_.memory_slices)};
  }

  Admission admit(const ClientInfo& filler, Bytes, const GpuInfo& gpu) override {
    if (!obstacle_.empty()) return {false, obstacle_};
    if (used_.compute + filler_.compute > geometry_.compute_slices ||
        used_.memory + filler_.memory > geometry_.memory_slices) {
      return {false, "no slices are left for an instance " + filler_name_};
    }
    if (filler.memory_known && !fits(filler.memory, filler_, gpu)) {
      return {false, "needs " + format_bytes(filler.memory) + ", more than an instance " +
                         filler_name_ + " has"};
    }
    used_.compute += filler_.compute;
    used_.memory += filler_.memory;
    return {};
  }

 private:
  [[nodiscard]] bool fits(Bytes memory, const Profile& own, const GpuInfo& gpu) const {
    return gpu.memory == Bytes{} ||
           memory.value <= gpu.memory.value / geometry_.memory_slices * own.memory;
  }

  /// Why the GPU is not cut; empty if it is.
  [[nodiscard]] std::string obstacle(const GpuInfo& gpu, const ClientInfo& training) const {
    if (geometry_.compute_slices == 0 || geometry_.memory_slices == 0 ||
        geometry_.slice_sms == 0) {
      return "mig: this GPU cannot be cut into instances";
    }
    if (training.ranks > 1) {
      return "mig: training has " + std::to_string(training.ranks) +
             " GPUs, and instances have no peer access to other GPUs";
    }
    if (training_.compute > geometry_.compute_slices) {
      return "mig: this GPU has no instance " + training_name_;
    }
    if (training.memory_known && !fits(training.memory, training_, gpu)) {
      return "mig: training needs " + format_bytes(training.memory) + ", more than an instance " +
             training_name_ + " has";
    }
    return {};
  }

  std::string training_name_;
  std::string filler_name_;
  MigGeometry geometry_;
  Profile training_;
  Profile filler_;
  Profile used_;
  std::string obstacle_;
};

}  // namespace

PolicySpec mig_spec() {
  const std::string guide = "NVIDIA MIG user guide, supported profiles";
  PolicySpec spec;
  spec.name = "mig";
  spec.summary = "An instance of SMs, memory and bandwidth for training and for each filler";
  spec.source = "NVIDIA Multi-Instance GPU user guide";
  spec.parameters = {
      declare_choice("training_profile", {"4g", "1g", "2g", "3g", "7g"},
                     {"", "Training's instance, by its compute slices.", guide}),
      declare_choice("filler_profile", {"3g", "1g", "2g", "4g", "7g"},
                     {"", "Each filler's instance, by its compute slices.", guide}),
  };
  spec.demands = {{SystemFeature::kMig}};
  spec.needs.launches = false;
  spec.make = [](const ParameterSet& given) { return std::make_unique<Mig>(given); };
  return spec;
}

}  // namespace bubblesim::policies

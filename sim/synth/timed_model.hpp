// A model's layers with every kernel timed on a GPU: computed once for all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {

struct TimedKernel {
  std::string name;
  Duration duration{};
  program::KernelProfile profile;
  model::Launch launch;
  double flops = 0;
};

/// The launch in the terms of the GPU model.
[[nodiscard]] program::LaunchNeeds needs_of(const model::Launch& launch);

[[nodiscard]] bool begins_with_norm(const model::LayerWork& layer);

/// A kernel (into TimedModel::kernels) or an exchange.
using TimedItem = std::variant<std::uint32_t, model::Communication>;

struct TimedLayer {
  std::vector<TimedItem> forward;
  std::vector<TimedItem> recompute;
  std::vector<TimedItem> input_grad;
  std::vector<TimedItem> weight_grad;
  std::vector<TimedItem> backward;   ///< both halves in one pass
  bool norm_first = false;   ///< the forward pass begins with a norm
  Duration forward_time{};   ///< sum of kernels
  Duration backward_time{};  ///< recomputation included
};

struct TimedModel {
  model::ModelWork work;             ///< kinds: the same indices as `layers`
  std::vector<TimedLayer> layers;    ///< by kind
  std::vector<TimedKernel> kernels;
};

/// Times kernels on one GPU.
class KernelTimer {
 public:
  KernelTimer(const hardware::GpuSpec& gpu, const model::Efficiency& efficiency,
              const KernelSlowdown& slowdown, std::uint32_t sm_carveout = 0)
      : gpu_(gpu), efficiency_(efficiency), slowdown_(slowdown), sm_carveout_(sm_carveout) {}

  [[nodiscard]] TimedKernel time(const model::KernelWork& work) const;
  [[nodiscard]] std::vector<TimedItem> time(const std::vector<model::WorkItem>& items,
                                            std::vector<TimedKernel>& kernels) const;

 private:
  const hardware::GpuSpec& gpu_;
  const model::Efficiency& efficiency_;
  KernelSlowdown slowdown_;
  std::uint32_t sm_carveout_;  ///< SMs that products leave free, if they can
};

/// Appends the kinds of layers of `work`, such as those for another size of micro-batch; returns
/// the index of the first one.
std::uint32_t append_kinds(TimedModel& model, model::ModelWork work, const KernelTimer& timer,
                           model::BackwardExchanges exchanges);

[[nodiscard]] TimedModel time_model(model::ModelWork work, const KernelTimer& timer,
                                    model::BackwardExchanges exchanges);

}  // namespace bubblesim::synth

// The training framework's costs on the host, and the points where the host waits.
// configs/software/*.json; each constant has a source, most are fitted (`scripts/fit training`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/model/layer_work.hpp"

namespace bubblesim::synth {

/// The part that waits for an activation received by a pipeline stage.
enum class PipelineWait : std::uint8_t {
  kStream,  ///< the compute stream; the host goes on
  kHost,    ///< the host, until the activation has arrived
};

/// The data sent to the next pipeline stage by tensor ranks, which all hold the same activations.
enum class PipelineTensors : std::uint8_t {
  kWhole,      ///< each rank sends all of it
  kScattered,  ///< each rank sends its share; receivers gather (Narayanan et al., SC 2021, 4.1)
};

/// Whether all ranks of the model agree on the gradients' norm (or overflow) in each iteration.
enum class GradientNorm : std::uint8_t { kNone, kGlobal };

/// The points at which the host waits for the compute stream, in addition to the end of an
/// iteration.
enum class ComputeWait : std::uint8_t {
  kNone,
  kAction,  ///< after each step of the schedule
  kLayer,   ///< after each layer's forward pass and each layer's backward pass
};

/// The part that waits for an exchange inside a layer.
enum class ExchangeWait : std::uint8_t { kStream, kHost };

/// Factors on kernel times against the libraries of the efficiency file.
struct KernelSlowdown {
  double gemm = 1;          ///< dense matrix products
  double batched_gemm = 1;  ///< of unfused attention
  double attention = 1;     ///< fused
  double streaming = 1;     ///< all kernels that stream through memory
};

struct SoftwareSpec {
  std::string id;
  Duration launch_call{};     ///< the launch call itself
  Duration forward_gap{};     ///< host time before each launch of a forward pass
  Duration backward_gap{};    ///< of a backward pass
  Duration optimizer_gap{};   ///< of the optimiser
  Duration collective_call{}; ///< further host time of a collective inside a layer
  Duration transfer_call{};   ///< further host time of a pipeline send or receive
  Duration action{};          ///< host time of each step of the schedule
  Duration iteration{};       ///< host time of each iteration: data, logging, schedule
  KernelSlowdown slowdown;
  model::Precision logits = model::Precision::kFp16;  ///< of the head's matrix products
  std::optional<std::uint64_t> fused_softmax;  ///< model::TrainingShape's
  ComputeWait compute_wait = ComputeWait::kNone;
  ExchangeWait exchange_wait = ExchangeWait::kStream;
  PipelineWait pipeline_wait = PipelineWait::kStream;
  PipelineTensors pipeline_tensors = PipelineTensors::kWhole;
  GradientNorm gradient_norm = GradientNorm::kGlobal;
  model::BackwardExchanges backward_exchanges = model::BackwardExchanges::kOverlapped;
};

/// Reads everything but the id; finishes the root.
[[nodiscard]] SoftwareSpec read_software(ObjectReader& root);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<SoftwareSpec> find_software(std::string_view name,
                                                        const std::string& folder);

}  // namespace bubblesim::synth

// Everything that an inference service is made of, read from the files of configs that it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"

namespace bubblesim::synth {

/// Which requests are served together.
enum class BatchingMode : std::uint8_t {
  kStatic,      ///< a batch of requests from its first to its last token
  kContinuous,  ///< an engine with Orca's rules: requests join and leave between steps
};

struct SpeculationNames {
  std::string draft;  ///< a model
  model::TokenTree tree;
  double acceptance = 0;
};

/// The requests of an engine's server.
struct RequestNames {
  /// Prompts and outputs of those in another file than that of arrivals.
  struct File {
    std::string path;
    workload::ArrivalFormat format = workload::ArrivalFormat::kAzure;
    workload::ListedLengths::Pick pick = workload::ListedLengths::Pick::kInOrder;
  };
  /// Nothing: as the file of arrivals says.
  std::optional<std::variant<workload::DrawnLengths, File>> lengths;
};

/// A server with the scheduler of a language-model engine (server_plan.hpp).
struct EngineNames {
  EngineSettings settings;
  RequestNames requests;
  std::optional<std::string> accepted_file;  ///< serving::Speculation::recorded
  std::optional<std::string> layers;         ///< a file of layer times: ServerPlan::kernels
  std::optional<std::string> steps;          ///< a file of recorded steps, in their place
};

/// Each name is a path (it has a "/" or ends in ".json"), else the id of a file of its folder.
struct InferenceNames {
  std::string model;
  std::uint32_t batch = 1;
  std::uint64_t sequence = 0;                  ///< one pass: as OnePass
  model::AttentionKernels attention = model::AttentionKernels::kFlash;  ///< one pass
  std::optional<std::uint64_t> prompt_tokens;  ///< generation; nothing: one pass
  std::uint64_t output_tokens = 1;             ///< generation
  DecodeMode decode = DecodeMode::kEager;      ///< generation
  std::optional<SpeculationNames> speculation; ///< generation; of an engine, the draft only
  BatchingMode batching = BatchingMode::kStatic;  ///< generation
  /// `decode` is all of the generation that it uses.
  std::optional<EngineNames> engine;
  model::Precision precision = model::Precision::kFp16;
  Duration step_host{};
  std::string software = "pytorch";
  std::optional<std::string> efficiency;       ///< nothing: the device's
};

/// depth levels; the third (the last of fewer) has `width` children, the others 1: the trees that
/// SpecInfer compares, <1,1,k,1,1,1,1,1> (ASPLOS 2024, sections 6.1 and 6.4). Both at least 1.
[[nodiscard]] model::TokenTree tree_of(std::uint32_t depth, std::uint32_t width);

/// `configs` holds models/, devices/, efficiency/ and software/. Without an efficiency by name, the
/// one that is called as the file of `gpu` is. All names that are not found are reported at once.
[[nodiscard]] CheckedResult<InferenceRequest> find_inference(const InferenceNames& names,
                                                             const hardware::GpuSpec& gpu,
                                                             const std::string& configs);

}  // namespace bubblesim::synth

// What an engine costs besides its kernels. configs/engines/*.json (configs/engines/README.md
// explains each key): every constant is an object with its value and its source.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::step_cost {

struct EngineSpec {
  std::string id;
  Duration first_step{};     ///< added to the first step after the engine has started
  Duration prepare{};        ///< host time before a step that was not scheduled ahead
  Duration output{};         ///< from the end of a step's kernels to its tokens
  double gpu_memory_utilization = 0.9;  ///< share of the GPU's memory that the engine may take
  Bytes reserved;            ///< of it, neither weights nor cache: activations, context, graphs
};

/// Everything but the id; finishes the root.
[[nodiscard]] EngineSpec read_engine(ObjectReader& root);
/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`.
[[nodiscard]] CheckedResult<EngineSpec> find_engine(std::string_view name,
                                                    const std::string& folder);

}  // namespace bubblesim::step_cost

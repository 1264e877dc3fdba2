// Reads model files (configs/models/*.json; each key is explained in configs/models/README.md)
// and finds the one for a name. All faults of a file are reported at once; unknown keys are
// faults, and so are sizes that do not fit each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::model {

/// The largest width, sequence or vocabulary (kMaxWidth) and the most layers or heads (kMaxCount)
/// that a file may state. Both are beyond any network: they catch slips of the pen and keep sums of
/// products within 64 bits.
inline constexpr std::uint32_t kMaxWidth = 1U << 22U;
inline constexpr std::uint32_t kMaxCount = 1U << 14U;

/// The parameter count that the model's authors print, e.g. 1.7e9 with last digit 1e8.
struct PublishedCount {
  double value = 0;
  double last_digit = 0;  ///< the unit of the last digit printed
  std::string source;
};

/// A model file as read.
struct ModelFile {
  std::string id;  ///< file name without ".json": "bert-base"
  std::string path;
  std::string source;  ///< of its sizes
  ModelSpec spec;
  std::optional<PublishedCount> published;
};

[[nodiscard]] CheckedResult<ModelFile> read_model_file(const std::string& path);

/// `label` stands for the file in messages, and is the id.
[[nodiscard]] CheckedResult<ModelFile> parse_model(std::string_view text, std::string label);

/// All "*.json" of a folder, ordered by id.
[[nodiscard]] CheckedResult<std::vector<ModelFile>> read_model_folder(const std::string& folder);

/// `name` is a path (it has a "/" or ends in ".json"), else the id of a file in `folder`; an
/// unknown one is a fault that names the nearest.
[[nodiscard]] CheckedResult<ModelSpec> find_model(std::string_view name,
                                                  const std::string& folder);

/// Everything of a file but its id and path; faults go to the reader's Errors.
[[nodiscard]] ModelFile read_model(ObjectReader& root);

}  // namespace bubblesim::model

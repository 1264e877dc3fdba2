// Inside of profile_folder: what meta.yaml says. It reads the YAML that the profiler writes: a key
// and its value on a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/step_cost/time_table.hpp"

namespace bubblesim::step_cost {

struct ProfileMeta {
  std::string gpu;
  std::string model;
  std::string engine_version;
  std::string profiled_at;
  std::vector<std::uint32_t> tensor_degrees;  ///< ascending
  std::uint32_t max_sequences = 1;            ///< of a batch
  Axis chunks;     ///< tokens of a prompt's chunk; 0: none; a point above 0 at least
  Axis sequences;  ///< decoding; 0: none; a point at least that fits beside a prompt, or, of one
                   ///< sequence, 1
  Axis cached;     ///< tokens, of both; a point above 0 at least

  /// Sequences that decode in a batch that has a prompt too.
  [[nodiscard]] std::uint32_t most_beside_prompt() const { return max_sequences - 1; }
};

/// Faults: keys that are missing or cannot be, and axes without a point that is used.
[[nodiscard]] Result<ProfileMeta> parse_profile_meta(const std::string& text,
                                                     const std::string& file);

/// "0, 16-2048 x2" as 0, 16, 32, ... 2048: whole values, and ranges whose neighbours have that
/// ratio, rounded, with the end of the range at last. Empty: not of this form.
[[nodiscard]] Axis parse_points(const std::string& text);

}  // namespace bubblesim::step_cost

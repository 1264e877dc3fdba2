// The `args` of kernels, copies and memsets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/import/json_fields.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// The id that a launch and its operations share.
struct LaunchId {
  std::optional<std::uint64_t> correlation;  ///< 0: it cannot be read
  /// Of an operator, except in older recordings of AMD GPUs: those write the correlation here, and
  /// nothing else.
  std::uint64_t external = 0;

  /// False: `key` is another argument.
  bool take(std::string_view key, const JsonValue& value);
  [[nodiscard]] std::uint64_t value() const {
    return correlation.value_or(external);
  }
};

/// The launch shape among arguments.
struct ShapeFields {
  std::optional<std::array<std::uint32_t, 3>> grid, block;
  std::uint16_t registers = 0;
  std::uint32_t shared = 0;

  /// False: `key` is another argument.
  bool take(std::string_view key, const JsonValue& value);
  /// Nothing unless grid and block are recorded and plausible.
  [[nodiscard]] std::optional<LaunchShape> shape() const;
};

struct DeviceOpArgs {
  std::optional<std::uint64_t> device;
  std::optional<std::uint64_t> stream;
  CopyDirection copy = CopyDirection::kNone;  ///< kNone: only its name may say it
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t graph_node = 0;
  std::int32_t priority = 0;
  std::optional<LaunchShape> shape;
  // Arguments of collectives; empty if not recorded. Escapes are not resolved.
  std::string_view collective, dtype, group, group_ranks;
  std::optional<std::uint64_t> elements_in, group_size, sequence;
  std::optional<std::uint64_t> from, to;  ///< peer of a receive (from) or a send (to): its rank in
                                          ///< the job
  std::optional<std::uint64_t> rank;      ///< in the group; for a send or receive the peer's
  bool repeats = false;  ///< a key occurs twice
};

[[nodiscard]] DeviceOpArgs read_device_op_args(std::string_view args, StringRule rule);

/// The direction in a name like "Memcpy HtoD (Pageable -> Device)"; kNone if the name has none.
[[nodiscard]] CopyDirection copy_direction(std::string_view name);

}  // namespace bubblesim::traces

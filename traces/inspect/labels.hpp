// Words and numbers for people, shared by the text and the picture of an inspection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Three or four significant digits in a suitable unit: "41.2 ms", "950 us", "12 ns".
[[nodiscard]] std::string short_duration(Duration span);

/// "1.25 GB", powers of 1000.
[[nodiscard]] std::string short_bytes(std::uint64_t bytes);

/// "25.7 %"; "-" if `whole` is zero.
[[nodiscard]] std::string percent(Duration part, Duration whole);

/// part / whole; 0 if `whole` is zero.
[[nodiscard]] double fraction(Duration part, Duration whole);

/// "<10 us", "10-100 us", ...
[[nodiscard]] std::string_view length_bucket_label(std::size_t bucket);

/// `text` in at most `columns` characters: ".." replaces the part cut from the middle. The cut
/// never splits a UTF-8 character.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

/// "NVIDIA H100 80GB HBM3 (132 SMs)", or "device not recorded".
[[nodiscard]] std::string device_label(const DeviceInfo& device);

// Ticks of a time axis.

struct AxisTick {
  Duration at{};  ///< since the origin
  std::string label;
};

/// 4 to 13 ticks from zero on, with a distance of 1, 2 or 5 times a power of ten, labelled in one
/// unit; `length` > 0.
[[nodiscard]] std::vector<AxisTick> axis_ticks(Duration length);

}  // namespace bubblesim::traces

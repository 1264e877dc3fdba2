// Words and numbers for people, shared by the text and the picture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/time.hpp"
#include "traces/inspect/inspection.hpp"

namespace bubblesim::traces {

/// Three or four significant digits in the fitting unit: "41.2 ms", "950 us", "12 ns".
[[nodiscard]] std::string short_duration(Duration span);

/// "1.25 GB", powers of 1000.
[[nodiscard]] std::string short_bytes(std::uint64_t bytes);

/// "25.7 %"; "-" where `whole` is zero.
[[nodiscard]] std::string percent(Duration part, Duration whole);

/// part / whole; 0 where `whole` is zero.
[[nodiscard]] double fraction(Duration part, Duration whole);

/// "<10 us", "10-100 us", ...
[[nodiscard]] std::string_view length_bucket_label(std::size_t bucket);

/// `text` in at most `columns` characters: what is cut from the middle is replaced by "..". It
/// never cuts a UTF-8 character.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

/// "NVIDIA H100 80GB HBM3 (132 SMs)", or "device not recorded".
[[nodiscard]] std::string device_label(const DeviceInfo& device);

}  // namespace bubblesim::traces

// JSON text piece by piece, for files too large to build as a document first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/number_text.hpp"

namespace bubblesim::traces {

/// Appends a JSON string with its quotes. Control characters are escaped; each byte that is not
/// UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Appends nanoseconds as microseconds with three decimals, exactly: -1500 ns is "-1.500".
inline void append_microseconds(std::string& out, std::int64_t ns) { append_decimal(out, ns, 3); }

}  // namespace bubblesim::traces

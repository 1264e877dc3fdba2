// Numbers of a request in one line of a file: of the outermost object of a JSON line, as they were
// written, never through a double.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/arrivals/decimal.hpp"

namespace bubblesim::workload {

/// What a format calls its fields; empty: it has none.
struct FieldNames {
  std::string_view time;
  std::string_view prompt;
  std::string_view output;
  std::string_view hashes;  ///< a list of whole numbers
};

/// The texts of a line's numbers; empty: the line has no such number.
struct LineFields {
  std::string time;
  std::string prompt;
  std::string output;
  std::vector<std::uint64_t> hashes;
};

/// The fields of a JSON object. Keys inside of nested values are other fields.
[[nodiscard]] ParsedDecimal<LineFields> json_fields(std::string_view line,
                                                    const FieldNames& names);

/// A number of tokens: a whole number below 2^31, perhaps written "374.0".
[[nodiscard]] ParsedDecimal<std::uint32_t> parse_tokens(std::string_view text,
                                                        std::string_view field);

}  // namespace bubblesim::workload

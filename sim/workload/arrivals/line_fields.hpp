// The numbers of a request in one line of a file. For a JSON line these are numbers of its
// outermost object, kept as their text, never through a double.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/arrivals/decimal.hpp"

namespace bubblesim::workload {

/// The names of a format's fields; empty: the format lacks the field.
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

/// The fields of a JSON object. Keys of nested objects are ignored.
[[nodiscard]] ParsedDecimal<LineFields> json_fields(std::string_view line,
                                                    const FieldNames& names);

/// A number of tokens: a whole number below 2^31, perhaps written "374.0".
[[nodiscard]] ParsedDecimal<std::uint32_t> parse_tokens(std::string_view text,
                                                        std::string_view field);

}  // namespace bubblesim::workload

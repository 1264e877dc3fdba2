// Formats with one request a line: Azure, Splitwise, ServeGen, Mooncake, bundles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/arrivals/arrival_file.hpp"
#include "sim/workload/arrivals/decimal.hpp"

namespace bubblesim::workload {

/// Whether a line end follows a line; the last line of a truncated file has none.
enum class LineEnd : std::uint8_t { kPresent, kMissing };

/// "2023-11-16 18:15:46.6805900", also with "T", "Z" or an offset ("+00:00"): nanoseconds since
/// 1970 in UTC. Years 1970 to 2069.
[[nodiscard]] ParsedDecimal<Duration> parse_date_time(std::string_view text);

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

/// Reads lines one by one.
class ArrivalLines {
 public:
  ArrivalLines(ArrivalFormat format, std::string label, Lengths lengths);

  /// Reads a line, given without its line end. Faults end the reading: a wrong header, too many
  /// lines.
  [[nodiscard]] Result<void> add(std::string_view line, LineEnd end);
  /// Sorts the arrivals, subtracts the first one's time, and decides whether too many lines are
  /// damaged.
  [[nodiscard]] Result<RecordedArrivals> finish() &&;

 private:
  [[nodiscard]] Result<void> add_header(std::string_view line);
  [[nodiscard]] Result<std::size_t> find_column(const std::vector<std::string_view>& names,
                                                std::string_view wanted,
                                                std::string_view header) const;
  [[nodiscard]] ParsedDecimal<LineFields> fields(std::string_view line) const;
  [[nodiscard]] ParsedDecimal<void> parse(std::string_view line);
  [[nodiscard]] ParsedDecimal<RecordedLength> parse_length(LineFields found);
  [[nodiscard]] tl::unexpected<Error> fail_at(std::size_t line, std::string message) const;

  ArrivalFormat format_;
  FieldNames names_;
  std::string label_;
  Lengths lengths_;
  std::size_t line_ = 0;       ///< lines so far, blank ones included
  std::size_t damaged_ = 0;    ///< damaged lines that have a line end
  std::size_t time_column_ = 0;
  std::size_t prompt_column_ = 0;
  std::size_t output_column_ = 0;
  std::size_t columns_ = 0;    ///< of the header; 0: none read yet
  std::optional<Error> first_damage_;
  RecordedArrivals arrivals_;
};

}  // namespace bubblesim::workload

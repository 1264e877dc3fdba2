#include "capture/replay/json_columns.hpp"

#include "sim/base/json.hpp"

namespace bubblesim::capture {

std::string columns_text(const Json& file) {
  return compact_text(file) + "\n";
}

std::vector<double> ColumnReader::numbers(std::string_view key, Range<double> range,
                                          double fallback) {
  return fitted(key, table_.numbers(key, range, Presence::kOptional), fallback);
}

std::vector<Duration> ColumnReader::spans(std::string_view key) {
  const auto counts = column<std::int64_t>(key, {0, kMostNanoseconds}, 0);
  return {counts.begin(), counts.end()};
}

}  // namespace bubblesim::capture

// Tables in JSON by columns: {"kind": [0, 0, 2], "solo_ns": [1200, 900, 55]}. A column whose values
// are all the default's is left out. For files of hundreds of thousands of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// No span in a file is longer: sums of a few stay within 64 bits.
inline constexpr std::int64_t kMostNanoseconds = std::int64_t{366} * 24 * 3600 * 1'000'000'000;
inline constexpr Range<std::int64_t> kSpan{0, kMostNanoseconds};

/// Puts `value_of(row)` of every row into a table, a Json; no column if each is `left_out`.
template <class Table, class Rows, class Of>
void put_column(Table& table, const char* key, const Rows& rows, Of value_of,
                std::optional<std::int64_t> left_out = {});

/// Names of kernels are the driver's: bytes that are no UTF-8 are replaced, so that it can be read.
[[nodiscard]] std::string columns_text(const Json& file);

/// Reads a table's columns; faults go where the reader's go.
class ColumnReader {
 public:
  /// `counting`: the column that every table of this kind has; it says how many rows there are.
  template <class T>
  ColumnReader(ObjectReader& table, std::string_view counting, Range<T> range,
               std::vector<T>& values);

  [[nodiscard]] std::size_t rows() const { return rows_; }

  /// Returns as many values as there are rows, all `fallback` where the column is not there or
  /// faulty.
  template <class T>
  [[nodiscard]] std::vector<T> column(std::string_view key, Range<T> range, T fallback);
  [[nodiscard]] std::vector<double> numbers(std::string_view key, Range<double> range,
                                            double fallback);
  [[nodiscard]] std::vector<Duration> spans(std::string_view key);

 private:
  template <class T>
  [[nodiscard]] std::vector<T> fitted(std::string_view key, std::vector<T> values, T fallback);

  ObjectReader& table_;
  std::size_t rows_ = 0;
};

/// The range of an index into `count` things. If there are none every value is a fault.
template <class T>
[[nodiscard]] Range<T> index_range(std::size_t count) {
  return {0, count == 0 ? T{0} : static_cast<T>(count - 1)};
}

// -- implementation --

template <class Table, class Rows, class Of>
void put_column(Table& table, const char* key, const Rows& rows, Of value_of,
                std::optional<std::int64_t> left_out) {
  const auto is_left_out = [&](const auto& row) {
    return static_cast<std::int64_t>(value_of(row)) == *left_out;
  };
  if (left_out && std::all_of(rows.begin(), rows.end(), is_left_out)) return;
  Table& column = table[key] = Table::array();
  for (const auto& row : rows) column.push_back(value_of(row));
}

template <class T>
ColumnReader::ColumnReader(ObjectReader& table, std::string_view counting, Range<T> range,
                           std::vector<T>& values)
    : table_(table) {
  values = table_.integers<T>(counting, range);
  rows_ = values.size();
}

template <class T>
std::vector<T> ColumnReader::column(std::string_view key, Range<T> range, T fallback) {
  return fitted(key, table_.integers<T>(key, range, Presence::kOptional), fallback);
}

template <class T>
std::vector<T> ColumnReader::fitted(std::string_view key, std::vector<T> values, T fallback) {
  if (values.size() == rows_) return values;
  if (table_.has(key)) {
    table_.fault(key, "found a column of " + std::to_string(values.size()) +
                          " valid values; expected " + std::to_string(rows_) +
                          ", as many as the table has rows");
  }
  return std::vector<T>(rows_, fallback);
}

}  // namespace bubblesim::capture

// Tables in JSON by columns: {"kind": [0, 0, 2], "solo_ns": [1200, 900, 55]}. A column whose values
// are all the default's is left out. For files of hundreds of thousands of rows.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// No span in a file is longer: sums of a few stay within 64 bits.
inline constexpr std::int64_t kMostNanoseconds = std::int64_t{366} * 24 * 3600 * 1'000'000'000;
inline constexpr Range<std::int64_t> kSpan{0, kMostNanoseconds};

/// Writes one JSON object, key by key, in the order of the calls.
class JsonWriter {
 public:
  JsonWriter() { text_.push_back('{'); }

  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void flag(std::string_view key, bool value);
  void integer(std::string_view key, std::int64_t value);
  void whole(std::string_view key, std::uint64_t value);
  void number(std::string_view key, double value);  ///< reads back as the same double

  void open(std::string_view key);  ///< an object; empty key: one of a list
  void close();
  void open_list(std::string_view key);
  void close_list();

  /// A column of integers, `value_of(row)`. Left out if every value is `fallback`.
  template <class Rows, class Of>
  void column(std::string_view key, const Rows& rows, Of value_of, std::int64_t fallback);
  /// A column that is never left out.
  template <class Rows, class Of>
  void full_column(std::string_view key, const Rows& rows, Of value_of);
  /// A column of numbers.
  template <class Rows, class Of>
  void number_column(std::string_view key, const Rows& rows, Of value_of);

  /// The whole text; nothing can be written afterwards.
  [[nodiscard]] std::string take();

 private:
  void key(std::string_view key);
  void put_signed(std::int64_t value);
  void put_whole(std::uint64_t value);
  void put_number(double value);
  void put_text(std::string_view value);

  std::string text_;
};

/// Reads a table's columns; faults go where the reader's go.
class ColumnReader {
 public:
  /// `counting`: the column that every table of this kind has; it says how many rows there are.
  template <class T>
  ColumnReader(ObjectReader& table, std::string_view counting, Range<T> range,
               std::vector<T>& values);

  [[nodiscard]] std::size_t rows() const { return rows_; }

  /// As many values as there are rows, all `fallback` where the column is not there or faulty.
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

/// The range of an index into `count` things. Where there are none every value is a fault.
template <class T>
[[nodiscard]] Range<T> index_range(std::size_t count) {
  return {0, count == 0 ? T{0} : static_cast<T>(count - 1)};
}

// -- implementation --

template <class Rows, class Of>
void JsonWriter::column(std::string_view name, const Rows& rows, Of value_of,
                        std::int64_t fallback) {
  for (const auto& row : rows) {
    if (static_cast<std::int64_t>(value_of(row)) == fallback) continue;
    full_column(name, rows, value_of);
    return;
  }
}

template <class Rows, class Of>
void JsonWriter::full_column(std::string_view name, const Rows& rows, Of value_of) {
  open_list(name);
  for (const auto& row : rows) {
    if constexpr (std::is_unsigned_v<decltype(value_of(row))>) {
      put_whole(value_of(row));
    } else {
      put_signed(value_of(row));
    }
    text_.push_back(',');
  }
  close_list();
}

template <class Rows, class Of>
void JsonWriter::number_column(std::string_view name, const Rows& rows, Of value_of) {
  open_list(name);
  for (const auto& row : rows) {
    put_number(value_of(row));
    text_.push_back(',');
  }
  close_list();
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

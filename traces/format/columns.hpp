// The three coders of traces/format/schema.hpp: records to columns, a check of column lengths
// before anything is allocated for them, and columns to records.
//
// Payload: varint number of columns, a varint byte length for each, then the columns' bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/format/fields.hpp"
#include "traces/format/schema.hpp"
#include "traces/format/varint.hpp"

namespace bubblesim::traces::format {

using ByteView = std::span<const std::uint8_t>;

/// Columns under construction; kept between chunks for its memory.
struct ColumnBytes {
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> lengths;

  void clear() { bytes.clear(), lengths.clear(); }
};

inline constexpr std::size_t kMaxColumns = 256;

/// Splits a payload; nothing if the lengths do not add up to it.
[[nodiscard]] inline std::optional<std::vector<ByteView>> split_columns(ByteView payload) {
  const std::uint8_t* place = payload.data();
  const std::uint8_t* const end = place + payload.size();
  std::uint64_t count = 0;
  place = read_varint(place, count);
  if (place == nullptr || place > end || count > kMaxColumns) return std::nullopt;
  std::vector<std::uint64_t> lengths(count);
  for (std::uint64_t& length : lengths) {
    if (place >= end) return std::nullopt;
    place = read_varint(place, length);
    if (place == nullptr || place > end) return std::nullopt;
  }
  std::vector<ByteView> columns;
  columns.reserve(count);
  for (const std::uint64_t length : lengths) {
    if (length > static_cast<std::uint64_t>(end - place)) return std::nullopt;
    columns.emplace_back(place, length);
    place += length;
  }
  if (place != end) return std::nullopt;
  return columns;
}

/// Appends the columns of `records` to `out`.
template <class Record>
class ColumnEncoder {
 public:
  ColumnEncoder(std::span<const Record> records, ColumnBytes& out) : records_(records), out_(out) {}

  void plain(auto get) {
    put([&](const Record& record) { return to_number(get(record)); });
  }
  void added(auto get) { plain(get); }
  void delta(auto get) {
    put_deltas([&](const Record& record) { return to_number(get(record)); });
  }
  void index(auto get) {
    put([&](const Record& record) { return std::uint64_t{get(record) + 1U}; });
  }
  void index_delta(auto get) {
    put_deltas([&](const Record& record) { return std::uint64_t{get(record) + 1U}; });
  }
  void text(auto get) {
    put([&](const Record& record) { return get(record).size(); });
    const std::size_t start = out_.bytes.size();
    for (const Record& record : records_) {
      out_.bytes.insert(out_.bytes.end(), get(record).begin(), get(record).end());
    }
    out_.lengths.push_back(out_.bytes.size() - start);
  }
  void list(auto get) {
    put([&](const Record& record) { return get(record).size(); });
    const std::size_t start = out_.bytes.size();
    for (const Record& record : records_) {
      for (const std::uint32_t value : get(record)) {
        std::uint8_t coded[kMaxVarintBytes];
        out_.bytes.insert(out_.bytes.end(), coded, write_varint(coded, value));
      }
    }
    out_.lengths.push_back(out_.bytes.size() - start);
  }

 private:
  void put(auto number_of) {
    const std::size_t start = out_.bytes.size();
    out_.bytes.resize(start + records_.size() * kMaxVarintBytes);
    std::uint8_t* place = out_.bytes.data() + start;
    for (const Record& record : records_) place = write_varint(place, number_of(record));
    const auto end = static_cast<std::size_t>(place - out_.bytes.data());
    out_.bytes.resize(end);
    out_.lengths.push_back(end - start);
  }
  void put_deltas(auto number_of) {
    std::uint64_t before = 0;
    put([&](const Record& record) {
      const std::uint64_t number = number_of(record);
      const std::uint64_t step = number - before;
      before = number;
      return zigzag(static_cast<std::int64_t>(step));
    });
  }

  std::span<const Record> records_;
  ColumnBytes& out_;
};

/// Are there as many columns as the schema has, each with a byte or more for each record? Until
/// that is known, `count` is only a claim.
class ColumnChecker {
 public:
  ColumnChecker(std::span<const ByteView> columns, std::uint32_t count)
      : columns_(columns), count_(count) {}

  void plain(auto) { need(count_); }
  void added(auto) {
    if (next_ < columns_.size()) need(count_);
  }
  void delta(auto) { need(count_); }
  void index(auto) { need(count_); }
  void index_delta(auto) { need(count_); }
  void text(auto) { need(count_), need(0); }
  void list(auto) { need(count_), need(0); }
  [[nodiscard]] bool right() const { return right_; }

 private:
  void need(std::size_t bytes) {
    right_ = right_ && next_ < columns_.size() && columns_[next_].size() >= bytes;
    ++next_;
  }

  std::span<const ByteView> columns_;
  std::uint32_t count_;
  std::size_t next_ = 0;
  bool right_ = true;
};

/// Fills `records` from columns that ColumnChecker passed. The columns lie in memory that goes
/// on for kVarintPadding bytes after the last.
template <class Record>
class ColumnDecoder {
 public:
  ColumnDecoder(std::span<const ByteView> columns, std::span<Record> records)
      : columns_(columns), records_(records) {}

  void plain(auto get) {
    each([&](Record& record, std::uint64_t number, FieldFaults& faults) {
      from_number(number, get(record), faults);
    });
  }
  void added(auto get) {
    if (next_ < columns_.size()) plain(get);
  }
  void delta(auto get) {
    std::uint64_t value = 0;
    each([&](Record& record, std::uint64_t number, FieldFaults& faults) {
      value += static_cast<std::uint64_t>(unzigzag(number));
      from_number(value, get(record), faults);
    });
  }
  void index(auto get) {
    each([&](Record& record, std::uint64_t number, FieldFaults& faults) {
      from_number(number, get(record), faults);
      --get(record);
    });
  }
  void index_delta(auto get) {
    std::uint64_t value = 0;
    each([&](Record& record, std::uint64_t number, FieldFaults& faults) {
      value += static_cast<std::uint64_t>(unzigzag(number));
      from_number(value, get(record), faults);
      --get(record);
    });
  }
  void text(auto get) {
    const std::vector<std::uint64_t> lengths = take_lengths();
    ByteView bytes = columns_[next_++];
    for (std::size_t i = 0; i < records_.size() && right_; ++i) {
      if (lengths[i] > bytes.size()) {
        right_ = false;
        return;
      }
      get(records_[i]).assign(bytes.begin(), bytes.begin() + static_cast<long>(lengths[i]));
      bytes = bytes.subspan(lengths[i]);
    }
    right_ = right_ && bytes.empty();
  }
  void list(auto get) {
    const std::vector<std::uint64_t> lengths = take_lengths();
    const ByteView bytes = columns_[next_++];
    const std::uint8_t* place = bytes.data();
    const std::uint8_t* const end = place + bytes.size();
    for (std::size_t i = 0; i < records_.size() && right_; ++i) {
      right_ = lengths[i] <= static_cast<std::uint64_t>(end - place);
      if (!right_) return;
      get(records_[i]).resize(lengths[i]);
      place = fill(std::span(get(records_[i])), place, end, [this](auto& item, std::uint64_t n) {
        from_number(n, item, faults_);
      });
    }
    right_ = right_ && place == end;
  }

  [[nodiscard]] bool right() const { return right_ && !faults_.out_of_range; }
  [[nodiscard]] std::uint64_t unknown_enums() const { return faults_.unknown_enums; }

 private:
  std::vector<std::uint64_t> take_lengths() {
    std::vector<std::uint64_t> lengths(records_.size());
    const ByteView column = columns_[next_++];
    const std::uint8_t* const end = column.data() + column.size();
    const auto* place = fill(std::span(lengths), column.data(), end,
                             [](std::uint64_t& length, std::uint64_t n) { length = n; });
    right_ = right_ && place == end;
    return lengths;
  }

  /// Gives each item a number; returns the place after the last.
  template <class Item>
  const std::uint8_t* fill(std::span<Item> items, const std::uint8_t* place,
                           const std::uint8_t* end, auto store) {
    for (Item& item : items) {
      std::uint64_t number = 0;
      if (place < end) place = read_varint(place, number);
      else place = nullptr;
      if (place == nullptr || place > end) [[unlikely]] {
        right_ = false;
        return end;
      }
      store(item, number);
    }
    return place;
  }

  void each(auto store) {
    const ByteView column = columns_[next_++];
    FieldFaults faults;
    if (column.size() == records_.size() &&
        std::none_of(column.begin(), column.end(), [](std::uint8_t byte) { return byte > 0x7F; })) {
      for (std::size_t i = 0; i < records_.size(); ++i) store(records_[i], column[i], faults);
    } else {
      const std::uint8_t* const end = column.data() + column.size();
      const auto* place = fill(records_, column.data(), end, [&](Record& record, std::uint64_t n) {
        store(record, n, faults);
      });
      right_ = right_ && place == end;
    }
    faults_.out_of_range |= faults.out_of_range;
    faults_.unknown_enums += faults.unknown_enums;
  }

  std::span<const ByteView> columns_;
  std::span<Record> records_;
  std::size_t next_ = 0;
  bool right_ = true;
  FieldFaults faults_;
};

}  // namespace bubblesim::traces::format

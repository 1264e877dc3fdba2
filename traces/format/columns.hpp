// The three coders of traces/format/schema.hpp: records to columns, a check of column lengths
// before anything is allocated for them, and columns to records.
//
// Payload: varint number of columns, a varint byte length for each, then the columns' bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "traces/format/schema.hpp"
#include "traces/format/varint.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

// Converts fields of records to unsigned 64-bit numbers of a column, and back.
//
// Times and durations are their nanoseconds in two's complement; signed integers are zigzagged;
// enums, booleans and strong ids are their number.

/// The greatest known enumerator, and the value for unknown ones (of later minor versions).
template <auto last, auto fallback>
struct KnownEnum {
  static constexpr auto kLast = last;
  static constexpr auto kFallback = fallback;
};
template <class Enum>
struct EnumRange;
template <>
struct EnumRange<HostCallKind> : KnownEnum<HostCallKind::kOther, HostCallKind::kOther> {};
template <>
struct EnumRange<DeviceOpKind> : KnownEnum<DeviceOpKind::kCollective, DeviceOpKind::kKernel> {};
template <>
struct EnumRange<CopyDirection> : KnownEnum<CopyDirection::kHostToHost, CopyDirection::kNone> {};
template <>
struct EnumRange<CollectiveKind> : KnownEnum<CollectiveKind::kBarrier, CollectiveKind::kUnknown> {};
template <>
struct EnumRange<MarkerKind> : KnownEnum<MarkerKind::kUser, MarkerKind::kUser> {};
template <>
struct EnumRange<StreamKind> : KnownEnum<StreamKind::kLegacyDefault, StreamKind::kUnknown> {};
template <>
struct EnumRange<StallKind> : KnownEnum<StallKind::kOther, StallKind::kOther> {};
template <>
struct EnumRange<CollectiveSource>
    : KnownEnum<CollectiveSource::kStandIn, CollectiveSource::kNvtx> {};
template <>
struct EnumRange<Severity> : KnownEnum<Severity::kError, Severity::kLoss> {};

/// Faults of converting numbers to fields.
struct FieldFaults {
  bool out_of_range = false;        ///< a number that its field cannot hold
  std::uint64_t unknown_enums = 0;  ///< replaced by EnumRange::kFallback
};

inline std::uint64_t to_number(TraceTime value) { return static_cast<std::uint64_t>(to_ns(value)); }
inline std::uint64_t to_number(Duration value) { return static_cast<std::uint64_t>(to_ns(value)); }
template <class Tag>
std::uint64_t to_number(StrongId<Tag> value) {
  return value.value;
}
template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
std::uint64_t to_number(T value) {
  if constexpr (std::is_signed_v<T>) return zigzag(value);
  else return static_cast<std::uint64_t>(value);
}

inline void from_number(std::uint64_t number, TraceTime& field, FieldFaults&) {
  field = TraceTime{Duration{static_cast<std::int64_t>(number)}};
}
inline void from_number(std::uint64_t number, Duration& field, FieldFaults&) {
  field = Duration{static_cast<std::int64_t>(number)};
}
template <class Tag>
void from_number(std::uint64_t number, StrongId<Tag>& field, FieldFaults& faults) {
  faults.out_of_range |= number > std::numeric_limits<std::uint32_t>::max();
  field.value = static_cast<std::uint32_t>(number);
}
template <class T>
  requires std::is_integral_v<T>
void from_number(std::uint64_t number, T& field, FieldFaults& faults) {
  if constexpr (std::is_signed_v<T>) {
    const std::int64_t value = unzigzag(number);
    faults.out_of_range |= value < std::numeric_limits<T>::min() ||
                           value > std::numeric_limits<T>::max();
    field = static_cast<T>(value);
  } else {
    faults.out_of_range |= number > std::numeric_limits<T>::max();
    field = static_cast<T>(number);
  }
}
template <class T>
  requires std::is_enum_v<T>
void from_number(std::uint64_t number, T& field, FieldFaults& faults) {
  const bool known = number <= static_cast<std::uint64_t>(EnumRange<T>::kLast);
  faults.unknown_enums += known ? 0 : 1;
  field = known ? static_cast<T>(number) : EnumRange<T>::kFallback;
}

using ByteView = std::span<const std::uint8_t>;

/// Columns under construction; reused for each chunk.
struct ColumnBytes {
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> lengths;

  void clear() { bytes.clear(), lengths.clear(); }
};

inline constexpr std::size_t kMaxColumns = 256;

/// Splits a payload; nothing if the lengths do not add up to its size.
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

/// Checks that there are as many columns as the schema has, each with at least a byte for each
/// record. Until then, `count` is only a claim.
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

/// Fills records from columns that ColumnChecker passed, block by block. A block is small enough to
/// stay in the cache while each column in turn adds its field. At least kVarintPadding readable
/// bytes follow the last column.
template <class Record>
class ColumnDecoder {
 public:
  ColumnDecoder(std::span<const ByteView> columns, std::size_t count) {
    columns_.reserve(columns.size());
    for (const ByteView column : columns) {
      const bool bytes = column.size() == count && all_one_byte(column);
      columns_.push_back({column.data(), column.data() + column.size(), bytes});
    }
  }

  /// Decodes the next records.
  void fill(std::span<Record> records) {
    records_ = records;
    next_ = 0;
    Schema<Record>::columns(*this);
  }
  /// Whether every decoded field is valid and every column is used up. To be called after the last
  /// block.
  [[nodiscard]] bool right() const {
    return right_ && !faults_.out_of_range &&
           std::all_of(columns_.begin(), columns_.begin() + static_cast<long>(next_),
                       [](const Column& column) { return column.place == column.end; });
  }
  [[nodiscard]] std::uint64_t unknown_enums() const { return faults_.unknown_enums; }

  // Called by the schema.
  void plain(auto get) {
    decode([&](Record& record, std::uint64_t number, std::uint64_t&, FieldFaults& faults) {
      from_number(number, get(record), faults);
    });
  }
  void added(auto get) {
    if (next_ < columns_.size()) plain(get);
  }
  void delta(auto get) {
    decode([&](Record& record, std::uint64_t number, std::uint64_t& value, FieldFaults& faults) {
      value += static_cast<std::uint64_t>(unzigzag(number));
      from_number(value, get(record), faults);
    });
  }
  void index(auto get) {
    decode([&](Record& record, std::uint64_t number, std::uint64_t&, FieldFaults& faults) {
      from_number(number, get(record), faults);
      --get(record);
    });
  }
  void index_delta(auto get) {
    decode([&](Record& record, std::uint64_t number, std::uint64_t& value, FieldFaults& faults) {
      value += static_cast<std::uint64_t>(unzigzag(number));
      from_number(value, get(record), faults);
      --get(record);
    });
  }
  void text(auto get) {
    const std::vector<std::uint64_t> lengths = take_lengths();
    Column& column = columns_[next_++];
    for (std::size_t i = 0; i < records_.size() && right_; ++i) {
      right_ = lengths[i] <= static_cast<std::uint64_t>(column.end - column.place);
      if (!right_) return;
      get(records_[i]).assign(column.place, column.place + lengths[i]);
      column.place += lengths[i];
    }
  }
  void list(auto get) {
    const std::vector<std::uint64_t> lengths = take_lengths();
    Column& column = columns_[next_++];
    for (std::size_t i = 0; i < records_.size() && right_; ++i) {
      right_ = lengths[i] <= static_cast<std::uint64_t>(column.end - column.place);
      if (!right_) return;
      auto& items = get(records_[i]);
      items.resize(lengths[i]);
      read(column, items.size(), [&](std::size_t at, std::uint64_t number) {
        from_number(number, items[at], faults_);
      });
    }
  }

 private:
  struct Column {
    const std::uint8_t* place;
    const std::uint8_t* end;
    bool bytes;               ///< each number is one byte
    std::uint64_t value = 0;  ///< the sum of differences so far
  };

  static bool all_one_byte(ByteView column) {
    std::uint8_t bits = 0;
    for (const std::uint8_t byte : column) bits |= byte;
    return bits <= 0x7F;
  }

  void read(Column& column, std::size_t count, auto take) {
    const auto* place = read_varints(column.place, column.end, count, take);
    right_ = right_ && place != nullptr;
    column.place = place == nullptr ? column.end : place;
  }

  std::vector<std::uint64_t> take_lengths() {
    std::vector<std::uint64_t> lengths(records_.size());
    read(columns_[next_++], lengths.size(),
         [&](std::size_t i, std::uint64_t number) { lengths[i] = number; });
    return lengths;
  }

  void decode(auto store) {
    Column& column = columns_[next_++];
    FieldFaults faults;
    std::uint64_t value = column.value;
    if (column.bytes) {
      const std::uint8_t* place = column.place;
      for (Record& record : records_) store(record, *place++, value, faults);
      column.place = place;
    } else {
      read(column, records_.size(), [&](std::size_t i, std::uint64_t number) {
        store(records_[i], number, value, faults);
      });
    }
    column.value = value;
    faults_.out_of_range |= faults.out_of_range;
    faults_.unknown_enums += faults.unknown_enums;
  }

  std::vector<Column> columns_;
  std::span<Record> records_;
  std::size_t next_ = 0;
  bool right_ = true;
  FieldFaults faults_;
};

}  // namespace bubblesim::traces::format

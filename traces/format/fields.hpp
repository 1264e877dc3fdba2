// How one field of a record becomes an unsigned 64-bit number in a column, and back.
//
// Times and durations are their nanoseconds in two's complement; signed integers are zigzagged;
// enums, booleans and strong ids are their number.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "traces/format/varint.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

/// The greatest known enumerator, and what an unknown one (of a later minor version) reads as.
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

/// What went wrong while numbers became fields.
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

}  // namespace bubblesim::traces::format

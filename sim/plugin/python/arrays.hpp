// Read-only NumPy arrays over C++ memory, without a copy. An array keeps the memory's owner alive.
// The first array imports NumPy.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "sim/observe/result_rows.hpp"

namespace bubblesim::plugin::python {

namespace py = pybind11;

/// NumPy's code of a type: of times "i8", of identifiers "u4".
template <class T>
[[nodiscard]] std::string type_code() {
  if constexpr (std::is_enum_v<T>) {
    return type_code<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return "?";
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return "(" + std::to_string(std::tuple_size_v<T>) + ",)" + type_code<typename T::value_type>();
  } else {
    constexpr bool kIsUnsigned = std::is_unsigned_v<T> || requires(T id) { id.value; };
    const char* const kind = std::is_floating_point_v<T> ? "f" : kIsUnsigned ? "u" : "i";
    return kind + std::to_string(sizeof(T));
  }
}

/// One field of a record: its name in Python, NumPy's code of its type, its offset in bytes.
struct Field {
  const char* name;
  std::string type;
  std::size_t offset;
};
#define BUBBLESIM_FIELD_AS(name, Record, member) \
  Field { name, type_code<decltype(std::declval<Record>().member)>(), offsetof(Record, member) }
#define BUBBLESIM_FIELD(Record, member) BUBBLESIM_FIELD_AS(#member, Record, member)

/// The type of records of `size` bytes with these fields.
[[nodiscard]] py::dtype record_type(std::initializer_list<Field> fields, std::size_t size);
/// A function that makes the type of a record with these members.
#define BUBBLESIM_RECORD_TYPE(Record, ...)                                           \
  [] {                                                                               \
    return record_type({PYBIND11_MAP_LIST(BUBBLESIM_FIELD, Record, __VA_ARGS__)},    \
                       sizeof(Record));                                              \
  }

/// `count` items at `data`, which `owner` keeps alive.
[[nodiscard]] py::array view(const py::dtype& type, const void* data, std::size_t count,
                             const py::object& owner);

template <class T>
[[nodiscard]] py::array view(const py::dtype& type, const std::vector<T>& items,
                             const py::object& owner) {
  return view(type, items.data(), items.size(), owner);
}

/// An array that owns `items`.
template <class T>
[[nodiscard]] py::array array_of(const py::dtype& type, std::vector<T> items) {
  auto kept = std::make_unique<std::vector<T>>(std::move(items));
  const std::vector<T>& borrowed = *kept;
  const py::capsule owner(kept.release(),
                          [](void* held) { delete static_cast<std::vector<T>*>(held); });
  return view(type, borrowed, owner);
}

// Tables for pandas: a list of columns (name, kind, values, missing).

/// Kind "number", of result_columns_of() only: float64, NaN for a missing value; "integer": int64,
/// and a bool array of the missing ones or None; "text": a list of str or None.
[[nodiscard]] py::tuple integer_column(const std::string& name,
                                       const std::vector<std::optional<std::int64_t>>& values);
[[nodiscard]] py::tuple text_column(const std::string& name, py::list values);

/// The columns of OUTPUTS.md over rows that outlive the call.
[[nodiscard]] py::list result_columns_of(const std::vector<const observe::ResultRow*>& rows);

}  // namespace bubblesim::plugin::python

// Read-only NumPy arrays over C++ memory, without a copy. An array keeps the memory's owner alive.
// The first array imports NumPy.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace bubblesim::plugin::python {

namespace py = pybind11;

/// One field of a record: its name in Python, NumPy's code of its type, its place.
struct Field {
  const char* name;
  const char* type;
  std::size_t offset;
};

/// The type of records of `size` bytes of which these fields are shown.
[[nodiscard]] py::dtype record_type(std::initializer_list<Field> fields, std::size_t size);

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

}  // namespace bubblesim::plugin::python

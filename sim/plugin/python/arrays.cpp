#include "sim/plugin/python/arrays.hpp"

#include <algorithm>
#include <limits>

namespace bubblesim::plugin::python {

py::dtype record_type(std::initializer_list<Field> fields, std::size_t size) {
  py::list names, types, offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    types.append(py::dtype::from_args(py::str(field.type)));
    offsets.append(field.offset);
  }
  return {names, types, offsets, static_cast<py::ssize_t>(size)};
}

py::array view(const py::dtype& type, const void* data, std::size_t count,
               const py::object& owner) {
  static const int nothing = 0;  // of an empty array, whose vector may have no memory
  py::array array(type, {static_cast<py::ssize_t>(count)}, {type.itemsize()},
                  data == nullptr ? &nothing : data, owner);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

namespace {

using Rows = std::vector<const observe::ResultRow*>;

py::tuple number_cells(const std::string& name, const Rows& rows, std::size_t column) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const observe::ResultRow* row : rows) {
    const auto* number = std::get_if<double>(&row->cells[column]);
    values.push_back(number == nullptr ? std::numeric_limits<double>::quiet_NaN() : *number);
  }
  return py::make_tuple(name, "number", array_of(py::dtype("f8"), std::move(values)), py::none());
}

py::tuple integer_cells(const std::string& name, const Rows& rows, std::size_t column) {
  std::vector<std::optional<std::int64_t>> values;
  values.reserve(rows.size());
  for (const observe::ResultRow* row : rows) {
    const auto* number = std::get_if<std::int64_t>(&row->cells[column]);
    values.push_back(number == nullptr ? std::nullopt : std::optional(*number));
  }
  return integer_column(name, values);
}

py::tuple text_cells(const std::string& name, const Rows& rows, std::size_t column) {
  py::list values;
  for (const observe::ResultRow* row : rows) {
    const auto* text = std::get_if<std::string>(&row->cells[column]);
    if (text == nullptr) values.append(py::none());
    else values.append(*text);
  }
  return text_column(name, std::move(values));
}

}  // namespace

py::tuple integer_column(const std::string& name,
                         const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<std::int64_t> numbers;
  std::vector<std::uint8_t> missing;
  for (const auto& value : values) {
    numbers.push_back(value.value_or(0));
    missing.push_back(value ? 0 : 1);
  }
  py::object holes = py::none();
  if (std::find(missing.begin(), missing.end(), 1) != missing.end()) {
    holes = array_of(py::dtype("?"), std::move(missing));
  }
  return py::make_tuple(name, "integer", array_of(py::dtype("i8"), std::move(numbers)), holes);
}

py::tuple text_column(const std::string& name, py::list values) {
  return py::make_tuple(name, "text", std::move(values), py::none());
}

py::list result_columns_of(const Rows& rows) {
  py::list columns;
  const auto all = observe::result_columns();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name(all[i].name);
    switch (all[i].type) {
      case observe::CellType::kNumber: columns.append(number_cells(name, rows, i)); break;
      case observe::CellType::kInteger: columns.append(integer_cells(name, rows, i)); break;
      case observe::CellType::kText: columns.append(text_cells(name, rows, i)); break;
    }
  }
  return columns;
}

}  // namespace bubblesim::plugin::python

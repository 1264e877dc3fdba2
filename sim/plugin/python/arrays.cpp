#include "sim/plugin/python/arrays.hpp"

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

}  // namespace bubblesim::plugin::python

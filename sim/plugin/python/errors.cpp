#include "sim/plugin/python/errors.hpp"

namespace bubblesim::plugin::python {

py::list fault_list(const Errors& faults) {
  const py::object make = py::module_::import("bubblesim._core").attr("Fault");
  py::list list;
  for (const Error& fault : faults) list.append(make(fault.file, fault.place, fault.message));
  return list;
}

void raise_faults(const Errors& faults, RunFault* of_policy) {
  if (of_policy != nullptr && of_policy->exception &&
      !py::isinstance(of_policy->exception, py::handle(PyExc_Exception))) {
    PyErr_SetObject(py::type::of(of_policy->exception).ptr(), of_policy->exception.ptr());
    throw py::error_already_set();
  }
  const py::module_ module = py::module_::import("bubblesim._core");
  std::string text;
  for (const Error& fault : faults) text += (text.empty() ? "" : "\n") + fault.text();
  const py::object error = module.attr("Error")(text);
  error.attr("faults") = fault_list(faults);
  if (of_policy != nullptr && of_policy->exception) {
    PyException_SetCause(error.ptr(), of_policy->exception.release().ptr());
  }
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

void bind_errors(py::module_& module) {
  py::object fault = py::module_::import("collections").attr("namedtuple")(
      "Fault", py::make_tuple("file", "place", "message"));
  fault.attr("__doc__") = "One fault of the input: the file, the place in it (a JSON pointer, a "
                          "line, a byte), and what was found and expected.";
  module.attr("Fault") = fault;
  py::dict members;
  members["faults"] = py::tuple();
  module.attr("Error") = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "bubblesim.Error",
      "A fault of the input, or a policy that ended its run; its exception is the cause. `faults` "
      "lists what the text says, each with file, place and message.",
      PyExc_Exception, members.ptr()));
}

}  // namespace bubblesim::plugin::python

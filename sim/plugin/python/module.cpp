// The compiled part of the Python package `bubblesim`: bubblesim._core.
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"

PYBIND11_MODULE(_core, module) {
  namespace python = bubblesim::plugin::python;
  module.doc() = "The compiled part of bubblesim; use what the package bubblesim offers.";
  module.attr("__version__") = BUBBLESIM_VERSION;
  python::bind_errors(module);
  python::bind_time(module);
  python::bind_contract(module);
  python::bind_policy(module);
  python::bind_placer(module);
  python::bind_register(module);
  python::bind_latency(module);
  python::bind_run(module);
  python::bind_trace(module);
  python::bind_store(module);
  python::bind_sweep(module);
  python::bind_advise(module);
  python::bind_fit(module);
  python::bind_lab(module);
  python::bind_sharing(module);
}

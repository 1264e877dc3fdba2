// Declarations of parameters, and register(): the module keeps what was registered in its
// attribute `registered`, a dict by name, in order.
#include <pybind11/stl.h>

#include <utility>

#include "policies/builtin.hpp"
#include "sim/plugin/load_policies.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/python_policy.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::plugin::python {
namespace {

using namespace policy;

py::object to_python(const Value& value) {
  struct Converted {
    py::object operator()(bool flag) const { return py::bool_(flag); }
    py::object operator()(std::int64_t number) const { return py::int_(number); }
    py::object operator()(double number) const { return py::float_(number); }
    py::object operator()(Duration span) const { return py::int_(to_ns(span)); }
    py::object operator()(const std::string& text) const { return py::str(text); }
  };
  return std::visit(Converted{}, value);
}

/// Shared by the copies of a spec: Python's count of references is not touched by copying one.
struct Maker {
  py::object make;
  RunFault* fault;
};

py::dict parameters_of(const ParameterSet& given) {
  py::dict parameters;
  for (const auto& [name, value] : given) parameters[py::str(name)] = to_python(value);
  return parameters;
}

std::unique_ptr<Placer> make_placer(const Maker& maker, const ParameterSet& given) {
  const py::gil_scoped_acquire lock;
  try {
    return placer_of(maker.make(parameters_of(given)), *maker.fault);
  } catch (py::error_already_set& raised) {
    throw told(raised, "make_placer", *maker.fault);
  }
}

std::unique_ptr<Policy> make_policy(const Maker& maker, const ParameterSet& given) {
  const py::gil_scoped_acquire lock;
  try {
    py::object made = maker.make(parameters_of(given));
    if (!py::isinstance<DefaultPolicy>(made)) {
      throw std::runtime_error("made " + py::repr(made).cast<std::string>() +
                               ", expected an instance of a subclass of bubblesim.Policy");
    }
    return std::make_unique<PythonPolicy>(std::move(made), *maker.fault);
  } catch (py::error_already_set& raised) {
    throw told(raised, "make", *maker.fault);
  }
}

void register_policy(py::module_& module, const std::string& name, const py::object& make,
                     std::vector<ParameterSpec> parameters, const std::string& summary,
                     const std::string& source, const Needs& needs, bool oracle,
                     const std::string& reconstruction, const py::object& make_placer) {
  if (PyCallable_Check(make.ptr()) == 0) throw py::type_error("make must be callable");
  if (!make_placer.is_none() && PyCallable_Check(make_placer.ptr()) == 0) {
    throw py::type_error("make_placer must be callable");
  }
  Registered registered;
  registered.spec.name = name;
  registered.spec.summary = summary;
  registered.spec.source = source;
  registered.spec.needs = needs;
  registered.spec.oracle = oracle;
  registered.spec.reconstruction = reconstruction;
  registered.spec.parameters = std::move(parameters);
  registered.make = make;
  registered.make_placer = make_placer;
  const Registry builtin = policies::builtin_policies();
  PolicySpec checked = registered.spec;
  checked.make = [](const ParameterSet&) { return std::make_unique<DefaultPolicy>(); };
  if (const auto good = check_spec(checked, builtin); !good) {
    throw py::value_error("policy " + name + ": " + good.error().message);
  }
  module.attr("registered")[py::str(name)] = py::cast(std::move(registered));
}

void bind_declarations(py::module_& module) {
  py::class_<ParameterSpec>(module, "Parameter", "A declared parameter of a policy.")
      .def_readonly("name", &ParameterSpec::name, "In configs.")
      .def_readonly("unit", &ParameterSpec::unit, "\"blocks\", \"%\" ...")
      .def_readonly("help", &ParameterSpec::help, "One sentence.")
      .def_readonly("source", &ParameterSpec::source, "Where the default is from.");
  const auto unit = py::arg("unit") = "";
  const auto help = py::arg("help") = "";
  const auto source = py::arg("source") = "";
  module.def("declare_flag", [](std::string name, bool fallback, std::string about_help,
                                std::string about_source) {
        return declare_flag(std::move(name), fallback, {"", about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::kw_only(), help, source, "True or False.");
  module.def("declare_integer", [](std::string name, std::int64_t fallback, std::int64_t minimum,
                                   std::int64_t maximum, std::string about_unit,
                                   std::string about_help, std::string about_source) {
        return declare_integer(std::move(name), fallback, minimum, maximum,
                               {about_unit, about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::arg("minimum"), py::arg("maximum"),
      py::kw_only(), unit, help, source, "A whole number; minimum and maximum are allowed.");
  module.def("declare_number", [](std::string name, double fallback, double minimum,
                                  double maximum, std::string about_unit, std::string about_help,
                                  std::string about_source) {
        return declare_number(std::move(name), fallback, minimum, maximum,
                              {about_unit, about_help, about_source});
      }, py::arg("name"), py::arg("default"), py::arg("minimum"), py::arg("maximum"),
      py::kw_only(), unit, help, source, "A number; minimum and maximum are allowed.");
  module.def("declare_duration", [](std::string name, std::int64_t fallback, std::int64_t minimum,
                                    std::int64_t maximum, std::string about_help,
                                    std::string about_source) {
        return declare_duration(std::move(name), Duration{fallback}, Duration{minimum},
                                Duration{maximum}, {"", about_help, about_source});
      }, py::arg("name"), py::arg("default_ns"), py::arg("minimum_ns"), py::arg("maximum_ns"),
      py::kw_only(), help, source, "In a config it is written with its unit, \"5ms\".");
  module.def("declare_choice", [](std::string name, std::vector<std::string> choices,
                                  std::string about_help, std::string about_source) {
        if (choices.empty()) throw py::value_error("expected at least one choice");
        return declare_choice(std::move(name), std::move(choices),
                              {"", about_help, about_source});
      }, py::arg("name"), py::arg("choices"), py::kw_only(), help, source,
      "The default is the first choice.");
}

}  // namespace

PolicySpec runnable(const Registered& registered, RunFault& fault) {
  PolicySpec spec = registered.spec;
  const auto maker = std::make_shared<const Maker>(Maker{registered.make, &fault});
  spec.make = [maker](const ParameterSet& given) { return make_policy(*maker, given); };
  if (!registered.make_placer.is_none()) {
    const auto placer = std::make_shared<const Maker>(Maker{registered.make_placer, &fault});
    spec.make_placer = [placer](const ParameterSet& given) { return make_placer(*placer, given); };
  }
  return spec;
}

void bind_register(py::module_& module) {
  py::class_<Registered>(module, "RegisteredPolicy", "A policy that Python registered.")
      .def_property_readonly("name", [](const Registered& self) { return self.spec.name; },
                             "In configs.")
      .def_property_readonly("summary", [](const Registered& self) { return self.spec.summary; },
                             "One line.");
  module.attr("registered") = py::dict();
  bind_declarations(module);
  module.def(
      "register",
      [module](const std::string& name, const py::object& make,
               std::vector<ParameterSpec> parameters, const std::string& summary,
               const std::string& source, const Needs& needs, bool oracle,
               const std::string& reconstruction, const py::object& placer) mutable {
        register_policy(module, name, make, std::move(parameters), summary, source, needs, oracle,
                        reconstruction, placer);
      },
      py::arg("name"), py::arg("make"), py::kw_only(),
      py::arg("parameters") = std::vector<ParameterSpec>{}, py::arg("summary") = "from Python",
      py::arg("source") = "", py::arg("needs") = Needs{}, py::arg("oracle") = false,
      py::arg("reconstruction") = "", py::arg("make_placer") = py::none(),
      "Makes a policy known to run(). make(parameters: dict) gives a Policy, once for every GPU "
      "of a run. make_placer(parameters) gives a Placer, once a run; None: every filler has its "
      "place on each of its GPUs. A policy of this name that Python registered is replaced.");
}

}  // namespace bubblesim::plugin::python

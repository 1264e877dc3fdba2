#include "sim/plugin/python/surroundings.hpp"

#include "policies/builtin.hpp"
#include "sim/plugin/load_policies.hpp"
#include "sim/plugin/python/errors.hpp"

namespace bubblesim::plugin::python {

policy::Registry known_policies(const std::vector<std::string>& libraries) {
  policy::Registry registry = policies::builtin_policies();
  for (const std::string& path : libraries) {
    if (const auto loaded = load_policies(path, registry); !loaded) raise_faults({loaded.error()});
  }
  return registry;
}

void add_registered(policy::Registry& registry, RunFault& fault) {
  for (const auto& [name, value] : core().attr("registered").cast<py::dict>()) {
    const auto& registered = value.cast<const Registered&>();
    if (registry.find(registered.spec.name)) {
      raise_faults({{{}, {}, "policy " + registered.spec.name +
                                 ": registered, and in a library too"}});
    }
    registry.add(runnable(registered, fault));
  }
}

bool uses_registered(const run::RunConfig& config) {
  const auto registered = core().attr("registered").cast<py::dict>();
  for (const run::PolicyChoice& choice : config.policies) {
    if (registered.contains(choice.name)) return true;
  }
  return false;
}

std::string config_folder(const std::optional<std::string>& given) {
  if (given) return *given;
  const py::object set = py::module_::import("os").attr("environ").attr("get")("BUBBLESIM_CONFIGS");
  if (!set.is_none()) return set.cast<std::string>();
  const py::object parents =
      py::module_::import("pathlib").attr("Path")(core().attr("__file__")).attr("parents");
  if (py::len(parents) <= BUBBLESIM_PREFIX_DEPTH) return BUBBLESIM_CONFIG_DIR;
  const py::object prefix = parents[py::int_(BUBBLESIM_PREFIX_DEPTH)];
  const py::object installed = prefix / py::str("share/bubblesim/configs");
  if ((installed / py::str("devices")).attr("is_dir")().cast<bool>()) {
    return py::str(installed).cast<std::string>();
  }
  return BUBBLESIM_CONFIG_DIR;
}

}  // namespace bubblesim::plugin::python

// run(): what the command `bubblesim run CONFIG --json` does, with policies of Python's too.
//
// A run that uses a policy of Python's simulates on one thread; others on `threads`. The lock is
// given up while it simulates, and taken for every call of a policy of Python's.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/observe/report.hpp"
#include "sim/plugin/load_policies.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/registered.hpp"
#include "sim/run/run_policies.hpp"

namespace bubblesim::plugin::python {
namespace {

struct RunArguments {
  py::object config;
  py::object policies;
  std::vector<std::string> libraries;
  std::string configs;  ///< folder with devices/
  std::size_t threads;
};

std::string text_of(const Errors& faults) {
  std::string text;
  for (const Error& fault : faults) text += (text.empty() ? "" : "\n") + fault.text();
  return text;
}

/// Raises bubblesim.Error; an exception of a policy is its cause, and Ctrl-C is itself.
[[noreturn]] void raise(const py::module_& module, const std::string& text, RunFault& fault) {
  if (fault.exception && !py::isinstance(fault.exception, py::handle(PyExc_Exception))) {
    PyErr_SetObject(py::type::of(fault.exception).ptr(), fault.exception.ptr());
    throw py::error_already_set();
  }
  const py::object error = module.attr("Error")(text);
  if (fault.exception) PyException_SetCause(error.ptr(), fault.exception.release().ptr());
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

class PythonRun {
 public:
  PythonRun(const py::module_& module, const RunArguments& arguments)
      : module_(module), arguments_(arguments) {}

  py::object run() {
    fill_registry();
    const run::RunConfig config = read_config();
    const std::string report = simulate(config);
    return py::module_::import("json").attr("loads")(report);
  }

 private:
  template <class T>
  T good(CheckedResult<T> result) {
    if (!result) raise(module_, text_of(result.error()), fault_);
    return *std::move(result);
  }

  void fill_registry() {
    policies::register_builtin(registry_);
    for (const std::string& path : arguments_.libraries) {
      if (const auto loaded = load_policies(path, registry_); !loaded) {
        raise(module_, loaded.error().text(), fault_);
      }
    }
    for (const auto& [name, value] : module_.attr("registered").cast<py::dict>()) {
      const auto& registered = value.cast<const Registered&>();
      if (registry_.find(registered.spec.name)) {
        raise(module_, "policy " + registered.spec.name + ": registered, and in a library too",
              fault_);
      }
      registry_.add(runnable(registered, fault_));
    }
  }

  run::RunConfig read_config() {
    const py::module_ json = py::module_::import("json");
    std::string path;
    py::object config = arguments_.config;
    if (!py::isinstance<py::dict>(config)) {
      path = py::module_::import("os").attr("fspath")(config).cast<std::string>();
      if (arguments_.policies.is_none()) return good(run::read_run_config(path, registry_));
      const py::object text = py::module_::import("pathlib").attr("Path")(path).attr("read_text")();
      config = json.attr("loads")(text);
    }
    if (!arguments_.policies.is_none()) {
      config = py::module_::import("copy").attr("copy")(config);
      config["policies"] = arguments_.policies;
    }
    const auto text = json.attr("dumps")(config).cast<std::string>();
    return good(run::parse_run_config(text, path.empty() ? "config" : path, registry_));
  }

  [[nodiscard]] bool uses_python(const run::RunConfig& config) const {
    const auto registered = module_.attr("registered").cast<py::dict>();
    for (const run::PolicyChoice& choice : config.policies) {
      if (registered.contains(choice.name)) return true;
    }
    return false;
  }

  std::string simulate(const run::RunConfig& config) {
    run::RunOptions options;
    options.threads = uses_python(config) ? 1 : arguments_.threads;
    CheckedResult<std::string> report = tl::unexpected<Errors>(Errors{});
    {
      const py::gil_scoped_release unlocked;
      report = simulate(config, options);
    }
    return good(std::move(report));
  }

  CheckedResult<std::string> simulate(const run::RunConfig& config,
                                      const run::RunOptions& options) const {
    const auto loaded = run::load_run(config, arguments_.configs + "/devices");
    if (!loaded) return tl::unexpected<Errors>(loaded.error());
    const auto report = run::run_policies(*loaded, registry_, options);
    if (!report) return tl::unexpected<Errors>(Errors{report.error()});
    return observe::report_json(*report);
  }

  const py::module_& module_;
  const RunArguments& arguments_;
  RunFault fault_;
  policy::Registry registry_;
};

/// $BUBBLESIM_CONFIGS, else what was installed with this module, else the source tree's.
std::string default_configs(const py::module_& module) {
  const py::object given = py::module_::import("os").attr("environ").attr("get")(
      "BUBBLESIM_CONFIGS");
  if (!given.is_none()) return given.cast<std::string>();
  const py::object parents =
      py::module_::import("pathlib").attr("Path")(module.attr("__file__")).attr("parents");
  const py::object prefix = parents[py::int_(BUBBLESIM_PREFIX_DEPTH)];
  const py::object installed = prefix / py::str("share/bubblesim/configs");
  if ((installed / py::str("devices")).attr("is_dir")().cast<bool>()) {
    return py::str(installed).cast<std::string>();
  }
  return BUBBLESIM_CONFIG_DIR;
}

}  // namespace

void bind_run(py::module_& module) {
  module.attr("Error") = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "bubblesim.Error",
      "A fault of the input, or a policy that ended its run; its exception is the cause.",
      PyExc_Exception, nullptr));
  module.def(
      "run",
      [module](const py::object& config, const py::object& policies,
               std::vector<std::string> libraries, const std::optional<std::string>& configs,
               std::size_t threads) {
        const RunArguments arguments{config, policies, std::move(libraries),
                                     configs ? *configs : default_configs(module), threads};
        return PythonRun(module, arguments).run();
      },
      py::arg("config"), py::arg("policies") = py::none(), py::kw_only(),
      py::arg("libraries") = std::vector<std::string>{}, py::arg("configs") = py::none(),
      py::arg("threads") = 1,
      "Simulates a run config (a path, or a dict whose paths are relative to the working folder) "
      "and gives the report that `bubblesim run --json` prints, as a dict. policies: in place of "
      "the config's, in the same form: names, and {\"name\", \"parameters\"}.");
}

}  // namespace bubblesim::plugin::python

// One GPU shared, for the judge of measured tables (notebooks/lab/sharing.py): its constants, jobs
// of configs/workloads, policies, and scenes of clients that run together.
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/add_once.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/policy/demands.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/scene_run.hpp"

namespace bubblesim::plugin::python {
namespace {

using validate::ClientFigures;
using validate::LoneClient;
using validate::PairMachine;
using validate::PairWorkload;
using validate::SceneClient;

/// A policy with its parameters.
struct System {
  const policy::PolicySpec* spec = nullptr;
  policy::ParameterSet parameters;
};

class Policies {
 public:
  /// Nothing: there is no such policy. Faults: parameters that it does not have.
  [[nodiscard]] std::unique_ptr<System> system(
      const std::string& policy, const std::vector<std::pair<std::string, JsonScalar>>& parameters,
      const std::string& file, const std::string& place) const {
    const auto spec = registry_.find(policy);
    if (!spec) return nullptr;
    std::vector<policy::GivenParameter> given;
    for (const auto& [name, value] : parameters) given.push_back({name, value});
    return std::make_unique<System>(
        *spec, good(policy::check_parameters(**spec, given, file, place)));
  }

  /// What a policy demands whatever its parameters; nothing of one that is not there.
  [[nodiscard]] std::vector<std::string> demands(const std::string& policy) const {
    std::vector<std::string> out;
    const auto spec = registry_.find(policy);
    if (!spec) return out;
    for (const policy::SystemDemand& demand : (*spec)->demands) {
      if (!demand.parameter.empty()) continue;
      add_once(out, std::string(policy::feature_word(demand.feature)));
    }
    return out;
  }

 private:
  policy::Registry registry_ = policies::judged_policies();
};

std::vector<std::int64_t> even_arrivals(std::uint64_t seed, std::int64_t burst,
                                        std::int64_t period, std::int64_t length) {
  std::vector<std::int64_t> out;
  for (const SimTime at : validate::pair_arrivals({1, seed, Duration{burst}}, Duration{period},
                                                  Duration{length})) {
    out.push_back(to_ns(at - kSimStart));
  }
  return out;
}

std::unique_ptr<SceneClient> scene_client(const LoneClient& lone, std::string name,
                                          const std::string& role,
                                          const std::vector<std::int64_t>& arrivals, bool loops,
                                          std::uint32_t epoch, std::int64_t pause,
                                          std::int64_t host_gap, std::int64_t feed) {
  auto out = std::make_unique<SceneClient>();
  out->name = std::move(name);
  out->role = role == "training"  ? policy::Role::kTraining
              : role == "offline" ? policy::Role::kOffline
                                  : policy::Role::kOnline;
  out->program = &lone.program;
  out->loops = loops;
  for (const std::int64_t at : arrivals) out->arrivals.push_back(kSimStart + Duration{at});
  out->epoch = epoch;
  out->pause = Duration{pause};
  out->host_gap = Duration{host_gap};
  out->feed = Duration{feed};
  return out;
}

std::vector<ClientFigures> run_scene(const PairMachine& machine, const System* system,
                                     const std::vector<SceneClient>& clients, std::int64_t length,
                                     std::int64_t from, double latencies_from) {
  validate::SceneSetup setup;
  setup.gpu = &machine.gpu;
  if (system != nullptr) {
    setup.policy = system->spec;
    setup.parameters = &system->parameters;
  }
  setup.clients = clients;
  setup.length = Duration{length};
  setup.from = Duration{from};
  setup.latencies_from = latencies_from;
  Result<std::vector<ClientFigures>> out;
  {
    const py::gil_scoped_release unlocked;
    out = validate::run_scene(setup);
  }
  return good(std::move(out));
}

std::vector<std::int64_t> ends_of(const ClientFigures& figures) {
  std::vector<std::int64_t> out;
  for (const SimTime end : figures.ends) out.push_back(to_ns(end - kSimStart));
  return out;
}

void bind_machines(py::module_& module) {
  py::class_<PairWorkload>(module, "PairWorkload")
      .def_readonly("id", &PairWorkload::id)
      .def_readonly("names", &PairWorkload::names)
      .def_readonly("batch", &PairWorkload::batch)
      .def_property_readonly("role",
                             [](const PairWorkload& own) {
                               return own.role == validate::WorkloadRole::kTraining ? "training"
                                                                                    : "inference";
                             })
      .def_property_readonly(
          "model_batches",
          [](const PairWorkload& own) { return validate::model_batches(own.steps); })
      .def_property_readonly(
          "is_resizable",
          [](const PairWorkload& own) { return validate::is_resizable(own.steps); });
  module.def("pair_workloads", [module] {
    return good(validate::read_workloads(config_folder(module, {}) + "/workloads"));
  });
  module.def("device_names", [module] {
    std::vector<std::pair<std::string, std::vector<std::string>>> out;
    for (auto& file :
         good(hardware::read_device_folder(config_folder(module, {}) + "/devices"))) {
      out.emplace_back(file.id, std::move(file.recorded_names));
    }
    return out;
  });
  py::class_<LoneClient>(module, "LoneClient")
      .def_readonly("per_s", &LoneClient::per_s)
      .def_readonly("mean_ms", &LoneClient::mean_ms);
  py::class_<PairMachine>(module, "PairMachine")
      .def(py::init([module](const std::string& device) {
        return good(validate::find_pair_machine(device, config_folder(module, {})));
      }))
      .def_property_readonly(
          "compute_slices", [](const PairMachine& own) { return own.gpu.mig.compute_slices; })
      .def("put", [](PairMachine& own, const std::string& key,
                     double value) { good(validate::put_constant(own.gpu, key, value)); })
      .def("instance",
           [](const PairMachine& own, std::uint32_t slices) {
             return good(validate::mig_instance(own, slices));
           })
      .def("lone", [](const PairMachine& own, const PairWorkload& workload, std::uint32_t batch,
                      double solo_ms) {
        CheckedResult<LoneClient> out;
        {
          const py::gil_scoped_release unlocked;
          out = validate::make_lone(workload, own, batch, solo_ms);
        }
        return good(std::move(out));
      });
}

}  // namespace

void bind_sharing(py::module_& module) {
  bind_machines(module);
  py::class_<System>(module, "System");
  py::class_<Policies>(module, "Policies")
      .def(py::init())
      .def("system", &Policies::system, py::keep_alive<0, 1>())
      .def("demands", &Policies::demands);
  py::class_<ClientFigures>(module, "ClientFigures")
      .def(py::init())
      .def_readonly("passes", &ClientFigures::passes)
      .def_readonly("per_s", &ClientFigures::per_s)
      .def_property_readonly("ends", &ends_of)
      .def("add", &ClientFigures::add)
      .def("mean_ms", &ClientFigures::mean_ms)
      .def("percentile_ms", &ClientFigures::percentile_ms);
  py::class_<SceneClient>(module, "SceneClient")
      .def(py::init(&scene_client), py::keep_alive<1, 2>())
      .def_property(
          "start", [](const SceneClient& own) { return to_ns(own.start); },
          [](SceneClient& own, std::int64_t ns) { own.start = Duration{ns}; });
  module.def("even_arrivals", &even_arrivals);
  module.def("run_scene", &run_scene);
}

}  // namespace bubblesim::plugin::python

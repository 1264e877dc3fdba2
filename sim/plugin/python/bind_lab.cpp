// What judges of measured tables and fits of constants (notebooks/lab) ask and have simulated.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

#include "policies/builtin.hpp"
#include "sim/base/add_once.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/model/training_work.hpp"
#include "sim/network/topology.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/policy/demands.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/scene_run.hpp"
#include "sim/validate/serving/serve_measured.hpp"
#include "sim/validate/training_job.hpp"

namespace bubblesim::plugin::python {
namespace {

// What judges of measured tables (notebooks/lab) have simulated.

/// A request as Python has it: its name, its arrival (ns), its tokens of prompt and output, and the
/// hashes of its prompt.
using GivenRequest = std::tuple<std::string, Duration, std::uint32_t, std::uint32_t,
                                std::vector<std::uint64_t>>;

validate::MeasuredLoad load_of(const std::vector<GivenRequest>& given,
                               std::uint32_t tokens_per_hash) {
  validate::MeasuredLoad out;
  for (const auto& [name, arrival, prompt, output, hashes] : given) {
    out.names.push_back(name);
    serving::Request& request = out.requests.emplace_back();
    request.number = out.requests.size() - 1;
    request.arrival = kSimStart + arrival;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    request.prefix.hashes = hashes;
    request.prefix.tokens_per_hash = hashes.empty() ? 0 : tokens_per_hash;
  }
  return out;
}

using Times = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::pair<std::uint32_t, std::uint32_t> closed_form_cases(
    const std::string& schedule, std::uint32_t ranks, std::uint32_t micro_batches,
    std::uint32_t chunks, const std::vector<Times>& given) {
  pipeline::ScheduleRequest request;
  request.ranks = ranks;
  request.micro_batches = micro_batches;
  request.chunks = chunks;
  std::vector<pipeline::StageTimes> times;
  for (const auto& [forward, input_grad, weight_grad] : given) {
    times.push_back({forward, input_grad, weight_grad});
  }
  const auto found = validate::closed_form_cases(schedule, request, times);
  return {found.cases, found.equal};
}

void bind_pipelines(py::module_& module) {
  module.def("schedules", [] {
    std::vector<std::string> out;
    for (const auto& spec : pipeline::schedule_specs()) out.push_back(spec.name);
    return out;
  });
  module.def("closed_form_cases", &closed_form_cases);
  module.def("graph_makespan",
             [](std::uint32_t stages, std::uint32_t micro_batches,
                const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
               return good(validate::graph_makespan(stages, micro_batches, edges));
             });
}

}  // namespace

void bind_lab(py::module_& module) {
  module.def("serve_measured", [](const std::string& settings,
                                  const std::vector<GivenRequest>& requests,
                                  std::uint32_t tokens_per_hash, const std::string& engine,
                                  const std::string& layers, const std::string& steps) {
    const validate::MeasuredLoad load = load_of(requests, tokens_per_hash);
    const validate::ServeSources sources{config_folder(), engine, layers, steps};
    return compact_text(
        good(unlocked([&] { return validate::serve_measured(settings, load, sources); })));
  });
  bind_pipelines(module);
}

namespace {

// What fits of constants and judges (notebooks/lab) ask: times of kernels, of all-reduces and of
// training iterations, under constants that a fit tries. Rows, and the loss, are theirs.

/// Kernels, each on its device, as an efficiency file has them take; indices of kind and precision,
/// shape (m, n, k, batch), FLOPs, bytes, elements, device.
class KernelTimes {
 public:
  using Kernel = std::tuple<std::size_t, std::size_t, std::array<std::uint64_t, 4>, double, double,
                            double, std::string>;

  KernelTimes(const std::string& name, const std::string& configs,
              const std::vector<Kernel>& kernels)
      : start_(good(model::find_efficiency(name, configs + "/efficiency"))) {
    for (const auto& [kind, precision, shape, flops, bytes, elements, device] : kernels) {
      model::KernelWork& work = kernels_.emplace_back();
      work.kind = static_cast<model::KernelKind>(kind);
      work.precision = static_cast<model::Precision>(precision);
      work.gemm = {shape[0], shape[1], shape[2], shape[3]};
      work.flops = flops;
      work.bytes = bytes;
      work.elements = elements;
      const auto known = devices_.find(device);
      gpus_.push_back(known != devices_.end()
                          ? &known->second
                          : &devices_.emplace(device, good(hardware::find_gpu_spec(
                                                          device, configs + "/devices")))
                                 .first->second);
    }
  }

  /// By path: unit, least and largest value, default, value in the file.
  [[nodiscard]] std::map<std::string, std::tuple<std::string, double, double, double, double>>
  constants() const {
    std::map<std::string, std::tuple<std::string, double, double, double, double>> out;
    model::Efficiency defaults, start = start_;
    for (const model::EfficiencyField& field : model::efficiency_fields()) {
      out[field.path] = {std::string(field.unit), field.low, field.high,
                                      field.value(defaults), field.value(start)};
    }
    return out;
  }

  [[nodiscard]] std::string id() const { return start_.id; }

  /// Times of these kernels under these constants.
  [[nodiscard]] std::vector<double> seconds(const std::vector<std::size_t>& rows,
                                            const std::map<std::string, double>& values) const {
    model::Efficiency efficiency = start_;
    for (const model::EfficiencyField& field : model::efficiency_fields()) {
      const auto value = values.find(field.path);
      if (value != values.end()) field.value(efficiency) = value->second;
    }
    std::vector<double> out;
    for (const std::size_t row : rows) {
      out.push_back(to_seconds(
          model::time_kernel(kernels_.at(row), *gpus_.at(row), efficiency).duration));
    }
    return out;
  }

 private:
  model::Efficiency start_;
  std::map<std::string, hardware::GpuSpec> devices_;
  std::vector<model::KernelWork> kernels_;
  std::vector<const hardware::GpuSpec*> gpus_;
};

/// Simulated times (ns) of ring all-reduces of so many bytes on one node of a cluster.
std::vector<Duration> ring_times(const hardware::ClusterSpec& cluster, std::uint32_t gpus,
                                 const std::vector<Bytes>& bytes) {
  const network::Topology topology(hardware::with_nodes(cluster, 1));
  std::vector<Duration> out;
  for (const Bytes size : bytes) {
    out.push_back(topology.solo_time(
        topology.plan(network::CollectivePattern::kAllReduce, size,
                      network::strided_group(0, gpus), network::Algorithm::kRing)));
  }
  return out;
}

/// A model file's network, or a GPT of given sizes.
struct Network {
  model::ModelSpec spec;
  std::optional<double> published;  ///< parameters, as its authors print them

  /// Nothing: it cannot have these sizes.
  [[nodiscard]] std::optional<double> parameters() const {
    const auto count = model::parameter_count(spec);
    return count ? std::optional(*count) : std::nullopt;
  }
  /// Width, layers and heads of a transformer.
  [[nodiscard]] std::optional<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> sizes()
      const {
    const auto* own = std::get_if<model::TransformerSpec>(&spec.network);
    if (own == nullptr) return std::nullopt;
    return std::tuple{own->hidden, own->layers, own->heads};
  }
};

Network find_network(const std::string& name) {
  const auto path = good(find_data_file(name, config_folder() + "/models", "model"));
  auto file = good(model::read_model_file(path));
  Network out{std::move(file.spec), {}};
  if (file.published) out.published = file.published->value;
  return out;
}

void bind_training(py::module_& module) {
  py::class_<Network>(module, "Network")
      .def(py::init(&find_network))
      .def_static("gpt",
                  [](std::uint64_t hidden, std::uint32_t layers, std::uint32_t heads,
                     std::uint64_t vocabulary, std::uint64_t sequence) {
                    return Network{model::gpt(hidden, layers, heads, vocabulary, sequence), {}};
                  })
      .def_readonly("published", &Network::published)
      .def_property_readonly("parameters", &Network::parameters)
      .def_property_readonly("sizes", &Network::sizes);
  py::class_<synth::PlanSpec>(module, "Plan")
      .def(py::init([](const std::string& text, const std::string& label,
                       const std::string& folder) {
        return good(validate::plan_of(text, label, folder));
      }))
      .def_readwrite("layers_per_stage", &synth::PlanSpec::layers_per_stage);
  py::class_<validate::Testbed>(module, "Testbed")
      .def(py::init([](const std::string& cluster, const std::string& software) {
        return good(validate::find_testbed(config_folder(), cluster, software));
      }))
      .def_property_readonly("device",
                             [](const validate::Testbed& own) { return own.cluster.device; })
      .def("seconds", [](const validate::Testbed& own, const Network& network,
                         const synth::PlanSpec& plan, std::uint32_t gpus, bool fits) {
        const auto check = fits ? validate::MemoryCheck::kMade : validate::MemoryCheck::kLeftOut;
        return good(unlocked([&] {
          return validate::iteration_seconds(own, network.spec, plan, gpus, check);
        }));
      });
}

}  // namespace

void bind_fit(py::module_& module) {
  module.def("config_folder", [] { return config_folder(); });
  py::class_<KernelTimes>(module, "KernelTimes")
      .def(py::init<const std::string&, const std::string&,
                    const std::vector<KernelTimes::Kernel>&>())
      .def_property_readonly("id", &KernelTimes::id)
      .def_property_readonly("constants", &KernelTimes::constants)
      .def("seconds", &KernelTimes::seconds);
  py::class_<hardware::ClusterSpec>(module, "Cluster")
      .def(py::init([](const std::string& name) {
        return good(hardware::find_cluster_spec(name, config_folder() + "/clusters"));
      }))
      .def_readonly("gpus_per_node", &hardware::ClusterSpec::gpus_per_node)
      .def_readonly("device", &hardware::ClusterSpec::device)
      .def("ring_times", &ring_times);
  bind_training(module);
}

namespace {

// One GPU shared, for the judge of measured tables (notebooks/lab/sharing.py): its constants, jobs
// of configs/workloads, policies, and scenes of clients that run together.

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

std::vector<Duration> since_start(const std::vector<SimTime>& instants) {
  std::vector<Duration> out;
  for (const SimTime at : instants) out.push_back(at - kSimStart);
  return out;
}

std::vector<Duration> even_arrivals(std::uint64_t seed, Duration burst, Duration period,
                                    Duration length) {
  return since_start(validate::pair_arrivals({1, seed, burst}, period, length));
}

std::unique_ptr<SceneClient> scene_client(const LoneClient& lone, std::string name,
                                          const std::string& role,
                                          const std::vector<Duration>& arrivals, bool loops,
                                          std::uint32_t epoch, Duration pause, Duration host_gap,
                                          Duration feed) {
  auto out = std::make_unique<SceneClient>();
  out->name = std::move(name);
  out->role = role == "training"  ? policy::Role::kTraining
              : role == "offline" ? policy::Role::kOffline
                                  : policy::Role::kOnline;
  out->program = &lone.program;
  out->loops = loops;
  for (const Duration at : arrivals) out->arrivals.push_back(kSimStart + at);
  out->epoch = epoch;
  out->pause = pause;
  out->host_gap = host_gap;
  out->feed = feed;
  return out;
}

std::vector<ClientFigures> run_scene(const PairMachine& machine, const System* system,
                                     const std::vector<SceneClient>& clients, Duration length,
                                     Duration from, double latencies_from) {
  validate::SceneSetup setup;
  setup.gpu = &machine.gpu;
  if (system != nullptr) {
    setup.policy = system->spec;
    setup.parameters = &system->parameters;
  }
  setup.clients = clients;
  setup.length = length;
  setup.from = from;
  setup.latencies_from = latencies_from;
  return good(unlocked([&] { return validate::run_scene(setup); }));
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
  module.def("pair_workloads", [] {
    return good(validate::read_workloads(config_folder() + "/workloads"));
  });
  module.def("device_names", [] {
    std::vector<std::pair<std::string, std::vector<std::string>>> out;
    for (auto& file : good(hardware::read_device_folder(config_folder() + "/devices"))) {
      out.emplace_back(file.spec.id, std::move(file.recorded_names));
    }
    return out;
  });
  py::class_<LoneClient>(module, "LoneClient")
      .def_readonly("per_s", &LoneClient::per_s)
      .def_readonly("mean_ms", &LoneClient::mean_ms);
  py::class_<PairMachine>(module, "PairMachine")
      .def(py::init([](const std::string& device) {
        return good(validate::find_pair_machine(device, config_folder()));
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
        return good(
            unlocked([&] { return validate::make_lone(workload, own, batch, solo_ms); }));
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
      .def_property_readonly(
          "ends", [](const ClientFigures& own) { return since_start(own.ends); })
      .def("add", &ClientFigures::add)
      .def("mean_ms", &ClientFigures::mean_ms)
      .def("percentile_ms", &ClientFigures::percentile_ms);
  py::class_<SceneClient>(module, "SceneClient")
      .def(py::init(&scene_client), py::keep_alive<1, 2>())
      .def_readwrite("start", &SceneClient::start);
  module.def("even_arrivals", &even_arrivals);
  module.def("run_scene", &run_scene);
}

}  // namespace bubblesim::plugin::python

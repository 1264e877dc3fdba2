// What fits of constants (notebooks/lab) ask: times of kernels, and what measured rows err by,
// under constants that a fit tries. Which rows take part, and the loss, is decided there.
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_fields.hpp"
#include "sim/model/efficiency_file.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/run/parallel.hpp"
#include "sim/synth/software_file.hpp"
#include "sim/validate/all_reduce_table.hpp"
#include "sim/validate/judges.hpp"
#include "sim/validate/validate.hpp"

namespace bubblesim::plugin::python {
namespace {

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
      out[std::string(field.path)] = {std::string(field.unit), field.low, field.high,
                                      field.value(defaults), field.value(start)};
    }
    return out;
  }

  [[nodiscard]] std::string id() const { return start_.id; }

  /// Of these kernels, under these constants.
  [[nodiscard]] std::vector<double> seconds(const std::vector<std::size_t>& rows,
                                            const std::map<std::string, double>& values) const {
    model::Efficiency efficiency = start_;
    for (const model::EfficiencyField& field : model::efficiency_fields()) {
      const auto value = values.find(std::string(field.path));
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

/// Measured all-reduces inside of a node.
class AllReduceTables {
 public:
  explicit AllReduceTables(const std::string& data)
      : tables_(good(validate::read_all_reduce_folder(data + "/" + validate::kAllReduceFolder))) {}

  /// By table: GPUs, sizes, which rows a fit may see, times (ns).
  [[nodiscard]] py::list rows() const {
    py::list out;
    for (const validate::AllReduceTable& table : tables_) {
      std::vector<std::uint64_t> bytes;
      std::vector<bool> fitted;
      std::vector<std::int64_t> measured;
      for (std::size_t i = 0; i < table.rows.size(); ++i) {
        bytes.push_back(table.rows[i].bytes.value);
        fitted.push_back(is_fit_row(table, i));
        measured.push_back(to_ns(table.rows[i].measured));
      }
      out.append(py::make_tuple(table.gpus, bytes, fitted, measured));
    }
    return out;
  }

  /// Simulated times (ns) by table and row. `cluster`: a file.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> times(const std::string& cluster) const {
    const hardware::ClusterSpec spec = good(hardware::read_cluster_spec(cluster));
    const validate::AllReducePredictor predictor(spec);
    std::vector<std::vector<std::int64_t>> out;
    for (const validate::AllReduceTable& table : tables_) {
      if (table.gpus > spec.gpus_per_node) {
        raise_faults({{table.path, {}, "found " + std::to_string(table.gpus) +
                                           " GPUs; expected at most a node of the cluster, " +
                                           std::to_string(spec.gpus_per_node)}});
      }
      std::vector<std::int64_t>& times = out.emplace_back();
      for (const auto& row : table.rows) {
        times.push_back(to_ns(predictor.time(table.gpus, row.bytes)));
      }
    }
    return out;
  }

 private:
  std::vector<validate::AllReduceTable> tables_;
};

/// Measured training jobs of one software.
class TrainingTables {
 public:
  TrainingTables(const std::string& folder, const std::vector<std::string>& names,
                 const std::string& software, const std::string& configs) {
    for (const std::string& name : names) {
      validate::TrainingTable table = good(
          validate::load_training_table(folder + "/" + name + ".csv", "", configs));
      std::erase_if(table.rows, [&](const validate::TrainingRow& row) {
        return row.plan.software != software;
      });
      if (!table.rows.empty()) tables_.push_back(std::move(table));
    }
    for (const validate::TrainingTable& table : tables_) {
      names_.push_back(table.name);
      for (const validate::TrainingRow& row : table.rows) {
        if (row.role != validate::RowRole::kFit || !row.unpredictable.empty()) continue;
        samples_.emplace_back(&row, &table.machine_of(row));
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  /// Of the rows that a fit may see: log of simulated over measured time. `software`: a file.
  [[nodiscard]] std::vector<double> log_ratios(const std::string& software,
                                               std::size_t threads) const {
    const synth::SoftwareSpec spec = good(synth::find_software(software, {}));
    std::vector<Result<double>> found(samples_.size(), 0.0);
    run::for_each_parallel(found.size(), threads,
                           [&](std::size_t i) { found[i] = log_ratio(samples_[i], spec); });
    std::vector<double> out;
    for (const Result<double>& ratio : found) out.push_back(good(ratio));
    return out;
  }

  /// All rows, fitted and judging, as JSON: a training_json() a table.
  [[nodiscard]] std::string judged(const std::string& software, std::size_t threads) const {
    const synth::SoftwareSpec spec = good(synth::find_software(software, {}));
    Json out = Json::array();
    for (validate::TrainingTable table : tables_) {
      for (auto& [key, machine] : table.machines) machine.software = spec;
      out.push_back(validate::training_json(
          table, validate::judge_training(table, threads, nullptr)));
    }
    return compact_text(out);
  }

 private:
  using Sample = std::pair<const validate::TrainingRow*, const validate::Testbed*>;

  static Result<double> log_ratio(const Sample& sample, const synth::SoftwareSpec& software) {
    const auto& [row, found] = sample;
    validate::Testbed machine = *found;
    machine.software = software;
    BUBBLESIM_ASSIGN_OR_RETURN(const auto predicted, validate::predict(*row, machine));
    return row->seconds ? std::log(predicted.seconds / *row->seconds)
                        : std::log(*row->tflops_per_gpu / predicted.tflops_per_gpu);
  }

  std::vector<validate::TrainingTable> tables_;
  std::vector<std::string> names_;
  std::vector<Sample> samples_;
};

}  // namespace

void bind_fit(py::module_& module) {
  module.def("config_folder", [module] { return config_folder(module, std::nullopt); });
  py::class_<KernelTimes>(module, "KernelTimes")
      .def(py::init<const std::string&, const std::string&,
                    const std::vector<KernelTimes::Kernel>&>())
      .def_property_readonly("id", &KernelTimes::id)
      .def_property_readonly("constants", &KernelTimes::constants)
      .def("seconds", &KernelTimes::seconds);
  py::class_<AllReduceTables>(module, "AllReduceTables")
      .def(py::init<const std::string&>())
      .def_property_readonly("rows", &AllReduceTables::rows)
      .def("times", &AllReduceTables::times);
  py::class_<TrainingTables>(module, "TrainingTables")
      .def(py::init<const std::string&, const std::vector<std::string>&, const std::string&,
                    const std::string&>())
      .def_property_readonly("names", &TrainingTables::names)
      .def("log_ratios", &TrainingTables::log_ratios)
      .def("judged", &TrainingTables::judged);
}

}  // namespace bubblesim::plugin::python

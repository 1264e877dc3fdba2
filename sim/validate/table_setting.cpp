#include "sim/validate/table_setting.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/base/data_file.hpp"
#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/synth/plan_file.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

// A table of another name, by its columns: vTrain's form, on one node or several, or published.
std::string like(const CsvTable& table) {
  if (table.has("tflops_per_gpu") && !table.has("iteration_time_ms")) {
    return "published_training_runs";
  }
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    most = std::max(most, table.count(i, "num_gpus").value_or(0));
  }
  return most > kNodeGpus ? "megatron_deepspeed_a100_multi_node"
                          : "megatron_deepspeed_a100_single_node";
}

CheckedResult<std::string> device_of(const std::string& cluster, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(hardware::ClusterSpec spec,
                             hardware::find_cluster_spec(cluster, configs + "/clusters"));
  return std::move(spec.device);
}

// The machines' devices and names: those of the setting, then those of device files.
CheckedResult<void> add_devices(TableSetting& setting, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(setting.device, device_of(setting.cluster, configs));
  for (MachineSetting& machine : setting.machines) {
    BUBBLESIM_ASSIGN_OR_RETURN(machine.device, device_of(machine.cluster, configs));
    setting.devices[machine.gpu] = machine.device;
  }
  return add_device_files(setting.devices, configs);
}

MachineSetting read_machine(ObjectReader& object, const std::string& folder) {
  MachineSetting out;
  out.gpu = object.text("gpu");
  out.cluster = object.text("cluster");
  ObjectReader plan = object.child("plan");
  if (plan.present()) out.plan = synth::read_plan(plan, folder);
  return out;
}

}  // namespace

CheckedResult<TableSetting> find_setting(const std::string& name, const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, configs + "/validation", "setting"));
  const std::string folder = fs::path(path).parent_path().string();
  std::vector<std::string> models;
  const auto read = [&](ObjectReader& root) {
    TableSetting out;
    (void)root.text("note", "");
    out.cluster = root.text("cluster");
    out.vocabulary = root.integer<std::uint64_t>("vocabulary", {1, 1ULL << 32U});
    ObjectReader plan = root.child("plan");
    if (plan.present()) out.plan = synth::read_plan(plan, folder);
    for (ObjectReader& machine : root.children("machines", Presence::kOptional)) {
      out.machines.push_back(read_machine(machine, folder));
    }
    models = root.texts("models", Presence::kOptional);
    root.finish();
    return out;
  };
  BUBBLESIM_ASSIGN_OR_RETURN(TableSetting out, read_whole_file(path, read));
  out.name = data_file_id(path);
  out.path = path;
  BUBBLESIM_RETURN_IF_ERROR(add_devices(out, configs));
  for (const std::string& model : models) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string file,
                               find_data_file(model, configs + "/models", "model"));
    BUBBLESIM_ASSIGN_OR_RETURN(model::ModelFile found, model::read_model_file(file));
    out.models.push_back(std::move(found));
  }
  return out;
}

CheckedResult<TableSetting> setting_for(const CsvTable& table, const std::string& configs) {
  const std::string own = fs::path(table.file()).stem().string();
  if (fs::exists(configs + "/validation/" + own + ".json")) return find_setting(own, configs);
  return find_setting(like(table), configs);
}

}  // namespace bubblesim::validate

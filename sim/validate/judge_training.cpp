#include "sim/validate/judges.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "sim/base/add_once.hpp"
#include "sim/run/parallel.hpp"
#include "sim/validate/table_setting.hpp"

namespace bubblesim::validate {
namespace {

std::string found_sizes(const TrainingRow& row, const Prediction& prediction) {
  std::string out;
  if (row.plan.micro_batch == 0) out = fmt::format("micro-batch {}", prediction.micro_batch);
  if (row.chunks_unknown) {
    out += fmt::format("{}{} chunks a rank", out.empty() ? "" : ", ", prediction.chunks);
  }
  return out.empty() ? out : "found: " + out;
}

ReportRow judge_row(const TrainingTable& table, const TrainingRow& row) {
  ReportRow out;
  out.table = table.name;
  out.role = row.role;
  out.label = row.label;
  out.unit = row.seconds ? "s" : "TFLOP/s";
  if (!row.unpredictable.empty()) {
    out.outcome = RowOutcome::kStated;
    out.note = row.unpredictable;
    return out;
  }
  const auto predicted = predict(row, table.machine_of(row));
  if (!predicted) {
    out.outcome = RowOutcome::kFailed;
    out.note = predicted.error().message;
    return out;
  }
  out.measured = row.seconds ? *row.seconds : *row.tflops_per_gpu;
  out.simulated = row.seconds ? predicted->seconds : predicted->tflops_per_gpu;
  out.note = found_sizes(row, *predicted);
  return out;
}

}  // namespace

CheckedResult<TrainingTable> load_training_table(const std::string& path,
                                                 const std::string& setting,
                                                 const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable csv, CsvTable::read(path));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const TableSetting shared,
      setting.empty() ? setting_for(csv, configs) : find_setting(setting, configs));
  TrainingTable out;
  out.name = std::filesystem::path(path).stem().string();
  BUBBLESIM_ASSIGN_OR_RETURN(out.rows, training_rows(csv, shared));
  out.note = {out.name, shared.path, {}, unread_training_columns(csv)};
  for (const TrainingRow& row : out.rows) {
    const std::pair key{row.cluster, row.plan.software};
    if (out.machines.contains(key)) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(Testbed machine, find_machine(configs, key.first, key.second));
    out.machines.emplace(key, std::move(machine));
  }
  for (const TrainingRow& row : out.rows) {
    if (row.unpredictable.empty()) add_once(out.note.devices, out.machine_of(row).cluster.device);
  }
  if (out.note.devices.empty()) out.note.devices = {shared.device};
  return out;
}

std::vector<ReportRow> judge_training(const TrainingTable& table, std::size_t threads,
                                      const RowDone& done) {
  std::vector<ReportRow> out(table.rows.size());
  std::mutex mutex;
  std::size_t finished = 0;
  run::for_each_parallel(out.size(), threads, [&](std::size_t i) {
    out[i] = judge_row(table, table.rows[i]);
    const std::lock_guard lock(mutex);
    ++finished;
    if (done) done(finished, out.size());
  });
  return out;
}

}  // namespace bubblesim::validate

// Simulates the rows of tables of measured sharing.
//
// Each client's program is scaled, host and device alike, until it alone takes what the table says
// of it alone, where it says so; everything that clients do to each other is a prediction.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/validate/pair_program.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/report.hpp"
#include "sim/validate/sharing_table.hpp"

namespace bubblesim::validate {

struct JudgedRow {
  SharingRow row;
  RowOutcome outcome = RowOutcome::kPredicted;
  std::string note;  ///< why it is not predicted, or what a prediction stands on; may be empty
  /// Passes a second of its figures' client, in one SharingStage::window after another from the
  /// run's start on, whole ones only; empty without a window.
  std::vector<double> over_time;
};

/// Everything that a judgement stands on, read once.
struct SharingStage {
  std::map<std::string, SharingSetting> settings;  ///< by table
  std::map<std::string, PairMachine> machines;     ///< by device
  std::vector<PairWorkload> workloads;
  std::map<std::string, std::vector<std::string>> unread;  ///< columns not read, by table
  const policy::Registry* policies = nullptr;
  Duration window{};  ///< of rates over time; 0: none are told

  [[nodiscard]] const std::string& device_of(const SharingRow& row) const {
    return row.device.empty() ? settings.at(row.table).device : row.device;
  }
};

/// Adds a table's setting and devices, and reads its rows. `setting`: a path or a file of
/// configs/validation; empty: that of the table's form. Faults: those of the rows, a second table
/// of one name.
[[nodiscard]] CheckedResult<std::vector<SharingRow>> add_sharing_table(
    SharingStage& stage, const std::string& path, const std::string& setting,
    const std::string& configs);

[[nodiscard]] CheckedResult<SharingStage> make_sharing_stage(const std::string& configs,
                                                             const policy::Registry& policies);

/// A MIG instance of so many compute slices as a machine of its own: its SMs and their peak, and
/// its share of the memory slices, of their bandwidth and L2. Fault: the GPU has no such instance.
[[nodiscard]] Result<PairMachine> mig_instance(const PairMachine& whole, std::uint32_t slices);

/// Judges the rows in their order; the same on any number of threads. Faults: parameters of the
/// setting that a policy does not have. A row whose system has no policy, whose job has no workload
/// or whose instance its GPU has not is stated; one that cannot run has failed, and the others are
/// judged all the same.
[[nodiscard]] CheckedResult<std::vector<JudgedRow>> judge_sharing(
    const std::vector<SharingRow>& rows, const SharingStage& stage, std::size_t threads,
    const std::function<void(const std::string&)>& progress);

}  // namespace bubblesim::validate

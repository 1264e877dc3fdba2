// A folder of its own for sweep files, and a small run config: an inline base over the sample job.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/plan.hpp"
#include "tests/folders.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::sweep {

using Folder = TempFolder;

inline const std::string kSource = BUBBLESIM_SOURCE_DIR;

/// A kernel table of one 1 ms kernel as a filler, the sample job, two policies.
inline std::string small_base() {
  return R"({"name": "small", "duration": "100ms", "training": {"trace": ")" + kSource +
         R"(/traces/samples/training"}, "fillers": [{"name": "batch", "mode": "offline",
           "program": {"kernel_table": "kernels.csv"}, "memory": "1GB"}],
           "policies": ["exclusive", "mps"]})";
}

/// A sweep file with these axes (a JSON list) and more keys (", \"repetitions\": 3").
inline std::string sweep_text(const std::string& axes, const std::string& more = "") {
  return R"({"name": "s", "base": )" + small_base() + R"(, "axes": )" + axes + more + "}";
}

inline std::string write_sweep(const Folder& folder, const std::string& axes,
                               const std::string& more = "") {
  folder.write("kernels.csv",
               "Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n");
  return folder.write("sweep.json", sweep_text(axes, more));
}

inline std::string texts(const Errors& faults) {
  std::string all;
  for (const Error& fault : faults) all += fault.text() + "\n";
  return all;
}

inline CheckedResult<SweepPlan> plan_of(const Folder& folder, const std::string& axes,
                                        const std::string& more = "",
                                        const std::vector<std::string>& set = {}) {
  BUBBLESIM_ASSIGN_OR_RETURN(const SweepConfig sweep,
                             read_sweep_config(write_sweep(folder, axes, more), set));
  return plan_sweep(sweep, policies::builtin_policies(), {kDeviceFolder, "1"});
}

inline ExecuteOptions options(std::size_t threads) { return {threads, "s", kDeviceFolder, "1"}; }

/// The settings of each run as text.
inline std::vector<std::string> settings_of(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const store::PlannedRun& run : plan.runs) all.push_back(settings_text(run.settings));
  return all;
}

}  // namespace bubblesim::sweep

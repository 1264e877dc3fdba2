// One arm of a measurement: its jobs, its policy, and the results from a rig.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/replay/job_record.hpp"
#include "capture/rig/rig.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/measure/measure.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/run/run_config.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::measure {

// Turns the records of a rig's processes into the results that sim/run gives for the same config,
// by the same definitions (sim/observe/OUTPUTS.md).

/// The measured window of a run: from the end of the warm-up to its end.
struct MeasuredWindow {
  Duration warmup{};
  Duration end{};  ///< > warmup
};

/// When a run ended: at `limit`, or with training's last iteration where the config counts
/// iterations and training did them.
[[nodiscard]] Duration end_of_run(const run::RunConfig& config,
                                  const capture::JobRecord* training, Duration limit);

/// Iterations in training's record, without those that end after the window.
[[nodiscard]] observe::RankIterations iterations_of(const capture::JobRecord& training,
                                                    const MeasuredWindow& window);

/// The result of a filler on the one GPU. `record`: nothing if the filler was not admitted or left
/// none.
[[nodiscard]] observe::FillerResult filler_result(const run::FillerConfig& config,
                                                  const std::optional<capture::JobRecord>& record,
                                                  const policy::Admission& admission,
                                                  const std::vector<Duration>& arrivals,
                                                  const MeasuredWindow& window);

/// The actions and times of the policy's process.
[[nodiscard]] observe::HostActivity host_activity(const capture::RigResult& result,
                                                  capture::Substrate substrate);

// Each operation of an arm's processes on the device, as a CSV table, to find where an iteration
// loses time against the simulation.

/// A row for each operation and pass, by job and start. Instants are ns since the common start:
/// `called_ns` and `returned_ns` of the launch call behind the gate, `start_ns` and `end_ns` on the
/// device, `noticed_ns` when the process knew of the end. A job that died has no rows.
[[nodiscard]] std::string operations_csv(const std::vector<capture::JobPlan>& jobs,
                                         const std::vector<capture::JobOutcome>& outcomes);

/// Known results of parts of the run alone.
struct Alone {
  std::optional<Duration> iteration;  ///< mean, of training
  Duration length{};                  ///< of the run of training alone
  std::vector<Duration> pass;         ///< of each filler, mean; 0: not known
};

struct Arm {
  std::string name;                             ///< for MeasureOptions::operations
  bool training = true;
  std::vector<std::uint32_t> fillers;           ///< into RunConfig::fillers
  const policy::PolicySpec* policy = nullptr;   ///< null: no policy
  const policy::ParameterSet* parameters = nullptr;
  const schedule::BubbleTable* bubbles = nullptr;
};

/// The clients of the arm as its policy sees them: training first, whether it runs or not.
[[nodiscard]] std::vector<policy::ClientInfo> client_infos(const run::LoadedRun& lone,
                                                           const Arm& arm, const Alone& alone);

/// Runs the arm in the place. The result is not normalised yet.
[[nodiscard]] Result<observe::PolicyResult> run_arm(const run::LoadedRun& lone, const Arm& arm,
                                                    const Alone& alone,
                                                    const capture::RigPlace& place,
                                                    const MeasureOptions& options);

/// How processes share the GPU under this decision. Fault: see check_measurable.
[[nodiscard]] Result<capture::Substrate> substrate_of(
    const policy::PolicySpec& spec, const policy::StartDecisions& decided,
    const std::vector<policy::ClientInfo>& clients, const hardware::GpuSpec& device,
    const capture::RigPlace& place);

}  // namespace bubblesim::measure

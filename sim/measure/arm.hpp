// One arm of a measurement: who runs, under which policy, and what a rig makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/rig/rig.hpp"
#include "sim/base/result.hpp"
#include "sim/measure/measure.hpp"
#include "sim/measure/measured_result.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::measure {

/// What parts of the run did alone, as far as it is known.
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

/// Runs the arm in the place. The result is normalised by nothing yet.
[[nodiscard]] Result<observe::PolicyResult> run_arm(const run::LoadedRun& lone, const Arm& arm,
                                                    const Alone& alone,
                                                    const capture::RigPlace& place,
                                                    const MeasureOptions& options);

/// How processes share the GPU under this decision. Fault: as check_measurable.
[[nodiscard]] Result<capture::Substrate> substrate_of(
    const policy::PolicySpec& spec, const policy::StartDecisions& decided,
    const std::vector<policy::ClientInfo>& clients, const hardware::GpuSpec& device,
    const capture::RigPlace& place);

}  // namespace bubblesim::measure

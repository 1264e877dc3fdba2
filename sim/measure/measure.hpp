// Measures runs that sim/run simulates: a config's job, fillers and policies, with processes that
// really launch, on a GPU or on a fake one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "capture/rig/rig.hpp"
#include "sim/base/result.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::measure {

struct MeasureOptions {
  std::uint32_t window = 0;  ///< launches of a filler on the device at once; 0: no limit
  /// Training waits for verdicts too, which costs it a round trip a launch: for policies that hold
  /// its launches. On a fake GPU, where it costs nothing, it always does.
  bool ask_training = false;
  /// Replaces the policies' sharing, if the machine cannot provide it (MPS); nothing: theirs.
  std::optional<capture::Substrate> substrate;
  /// Takes the table of operations (arm.hpp), once for each arm: "alone", "FILLER-alone", a
  /// policy's name, the second time "POLICY-2". Null: operations are not recorded; recording slows
  /// hosts.
  std::function<Result<void>(const std::string& arm, const std::string& csv)> operations;
};

/// Checks before the start that a real GPU can do all that the config's policies ask for: sharing
/// by MIG, a policy's own time slices, memory that is not all on the device and bounds that no GPU
/// reaches are faults, with the policy's name. So are demands on fillers that processes cannot
/// meet. All faults at once.
[[nodiscard]] Errors check_measurable(const run::LoadedRun& lone,
                                      const policy::Registry& registry,
                                      const capture::RigPlace& place);

/// Measures a config once: the job alone, each filler alone, each policy. `lone`: a run of one rank
/// (run::lone_rank). The caller fills in `measured.round` of the report. Fault: a setup that
/// failed; a training process that died; an illegal decision of a policy. A filler that dies is
/// counted, with an error's severity.
[[nodiscard]] Result<observe::RunReport> measure_policies(const run::LoadedRun& lone,
                                                          const policy::Registry& registry,
                                                          const capture::RigPlace& place,
                                                          const MeasureOptions& options);

}  // namespace bubblesim::measure

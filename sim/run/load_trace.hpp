// Finds and reads the traces that a user names: .btr files, PyTorch profiler JSON, Nsight Systems
// SQLite exports, Chakra execution traces (each plain or gzip), or folders of these.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "traces/trace.hpp"

namespace bubblesim::run {

/// Text for a progress line ("reading rank3.json.gz, 40 %"); called often, on this thread.
using ProgressText = std::function<void(const std::string&)>;

inline constexpr CounterSpec kDeviceAssumed{
    "device_not_known", Severity::kNotice,
    "no device file lists the recorded GPU; its constants are those of the recorded properties "
    "and another device's for the rest, which a replay of the job alone does not use"};

inline constexpr CounterSpec kDeviceMade{
    "device_made_from_trace", Severity::kLoss,
    "no device file lists the recorded GPU: it has the name, SMs and memory that the trace records "
    "and all other constants of a device of its compute capability, else of an A100; how jobs "
    "share it is not measured (a file by `bubblesim calibrate`, given as --device, is)"};

inline constexpr CounterSpec kWorldsDiffer{
    "job_world_sizes_differ", Severity::kNotice,
    "ranks whose file says that the job has fewer ranks than another says; the most are taken"};

/// The first key of the report that `bubblesim retarget` writes beside its trace. In a folder, a
/// .json file that begins with this key is not a trace.
inline constexpr std::string_view kRetargetReportKey = "recorded_ranks";

struct LoadedTrace {
  traces::JobTrace job;      ///< ranks in order, on one clock
  CounterSet counters;       ///< of reading and aligning, summed over ranks
  /// Median disagreement of collective ends after alignment; nothing: no clock was aligned.
  std::optional<Duration> residual;
  bool clocks_apart = false;           ///< as traces::AlignmentReport has it
  bool collectives_simulated = false;  ///< here: they have sizes and no times
  bool what_ifs_doubtful = false;      ///< of the recording that a re-targeted job is from
  bool lacks_ranks = false;            ///< perhaps: some of its files, read apart, do
  /// The files read here (rank0/trace.json, rank1/trace.json), by the file name in a trace's
  /// provenance; for a .btr the two differ.
  std::map<std::string, std::vector<std::string>> files;

  /// Replaces the file name from a trace's provenance by the path of the file that was read.
  [[nodiscard]] Error located(Error fault) const;
  [[nodiscard]] Errors located(Errors faults) const;
};

/// The trace files of a path: itself, or the traces of a folder, recognised by their names. They
/// come in natural order (worker2 before worker10); importers number ranks by it if the files give
/// no number. Hidden files and folders are left out. Fault: the path is neither a file nor a
/// folder, or a folder without traces.
[[nodiscard]] Result<std::vector<std::filesystem::path>> trace_files(
    const std::filesystem::path& path);

/// `paths`: files, or folders with the files of one job. At least one. The result is the same on
/// any number of threads. Collectives with sizes and no times (Chakra's) last as long as alone on
/// the `cluster`, rank n on its GPU n; without a cluster they take no time, a loss. Fault: a
/// cluster that is too small.
[[nodiscard]] Result<LoadedTrace> load_trace(
    const std::vector<std::string>& paths, const ProgressText& progress = {},
    std::size_t threads = 1, const std::optional<hardware::ClusterSpec>& cluster = {});

/// The same, with the cluster named: the id of a file of `cluster_folder`, or a path. Fault: no
/// collective needs it.
[[nodiscard]] CheckedResult<LoadedTrace> load_trace_on(const std::vector<std::string>& paths,
                                                       const std::optional<std::string>& cluster,
                                                       const std::string& cluster_folder,
                                                       const ProgressText& progress = {},
                                                       std::size_t threads = 1);

/// Whether the path is a folder or a trace, and so not a config: by its name and its first 64 KiB.
[[nodiscard]] bool looks_like_trace(const std::string& path);

/// The job's device: `wanted` (id, path or recorded name), else the trace's.
[[nodiscard]] CheckedResult<hardware::GpuSpec> device_of(const traces::JobTrace& job,
                                                         const std::optional<std::string>& wanted,
                                                         const std::string& device_folder);

/// For running a job: as device_of, but a GPU without a device file gets the properties recorded in
/// the trace, if they have its SMs, and counts as a loss.
[[nodiscard]] CheckedResult<hardware::GpuSpec> device_for_run(
    const traces::JobTrace& job, const std::optional<std::string>& wanted,
    const std::string& device_folder, CounterSet& counters);

/// For replaying a job alone: as device_of, but a GPU without a device file gets the properties
/// recorded in the trace, and is counted.
[[nodiscard]] CheckedResult<hardware::GpuSpec> device_for_replay(const traces::JobTrace& job,
                                                                 const std::string& device_folder,
                                                                 CounterSet& counters);

}  // namespace bubblesim::run

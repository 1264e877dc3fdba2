// A captured data-parallel job as it would run with another number of replicas, on another
// interconnect, on another device.
//
// Collectives in which every rank takes part are the data-parallel ones. Each rank's span in one,
// from the last rank's arrival to its own end, is the recorded one times
//
//   model(new cluster, new replicas) / model(recorded cluster, recorded replicas)
//
// with the network's cost of a collective alone (sim/network/topology.hpp), so that nothing changed
// gives back the recording. If the recorded cluster is not named, the span is the model's own. The
// array of a collective stays as large as it was: gradients and parameters do not depend on the
// number of replicas. Kernels are scaled by a ratio that is handed in; hosts stay as recorded.
//
// Whatever is not in the recording is named: counters say how often, `extrapolated` says what.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/network/topology.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/workload/job_program.hpp"
#include "traces/import/collective_times.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

inline constexpr CounterSpec kRanksCopied{
    "retarget_ranks_copied", Severity::kNotice,
    "ranks that were not recorded; each repeats a recorded one, in turn"};
inline constexpr CounterSpec kRanksDropped{
    "retarget_ranks_dropped", Severity::kNotice, "recorded ranks that the new job does not have"};
inline constexpr CounterSpec kCollectivesScaled{
    "retarget_collectives_scaled", Severity::kNotice,
    "collectives whose time is the recorded one times a ratio of two modelled ones"};
inline constexpr CounterSpec kCollectivesModelled{
    "retarget_collectives_modelled", Severity::kNotice,
    "collectives whose time is the model's alone: the recorded cluster was not named"};
inline constexpr CounterSpec kBytesInferred{
    "retarget_collective_bytes_inferred", Severity::kNotice,
    "collectives recorded without bytes; given those whose modelled time is the recorded one"};
inline constexpr CounterSpec kCollectivesKept{
    "retarget_collectives_kept", Severity::kLoss,
    "collectives that keep their recorded time on the new set-up: between some ranks only, not "
    "joined, of no known kind, or of no known bytes"};
inline constexpr CounterSpec kKernelsScaled{
    "retarget_kernels_scaled", Severity::kNotice,
    "kernels and memsets whose time is the recorded one times a ratio of two devices"};
inline constexpr CounterSpec kCopiesKept{
    "retarget_copies_kept", Severity::kNotice,
    "copies that keep their recorded time on the new device"};
inline constexpr CounterSpec kProfilesKept{
    "retarget_profiles_kept", Severity::kNotice,
    "kernel profiles without a launch shape, which keep the recorded device's occupancy"};

/// The time of a kernel on the new device over that on the recorded one; > 0. Asked once for each
/// name and class of a rank.
using KernelRatio = std::function<double(std::string_view name, program::KernelClass)>;

struct DeviceChange {
  hardware::GpuSpec device;
  KernelRatio ratio;
};

/// What becomes of ranks that repeat recorded ones.
enum class Copies : std::uint8_t {
  kUnfolded,  ///< each is a rank of the job
  kFolded,    ///< none is: a copy arrives when its original does, so times are the same
};

struct RetargetSpec {
  std::uint32_t replicas = 0;  ///< ranks of the new job; 0: as many as recorded
  Copies copies = Copies::kUnfolded;
  std::optional<hardware::ClusterSpec> recorded_cluster{};  ///< nothing: not known
  std::optional<hardware::ClusterSpec> cluster{};           ///< nothing: the recorded one
  std::optional<DeviceChange> device{};                     ///< nothing: the recorded one
};

struct Retargeted {
  workload::JobProgram job;
  std::uint32_t replicas = 0;              ///< of the real job, folded ones included
  std::vector<std::string> extrapolated;   ///< in words, one thing each
  CounterSet counters;                     ///< also in job.counters
};

/// Fault: a job that was not captured; another number of replicas of one that is not data-parallel
/// alone (it has transfers or collectives between some ranks, or no collective of all); no cluster
/// to model the new number on; more ranks than a cluster without NICs has GPUs.
[[nodiscard]] Result<Retargeted> retarget(workload::JobProgram job, const RetargetSpec& spec);

// Modelled times of a recorded job's collectives on one cluster: of those that retarget takes
// there, and of those whose recording has sizes only.

/// What the network calls a recorded kind: a reduce moves what a broadcast moves, the other way
/// round; a barrier is an all-reduce of one element. Nothing: not known, or between some ranks.
[[nodiscard]] std::optional<network::CollectivePattern> network_kind(traces::CollectiveKind kind);

/// The whole array of a collective of `ranks`, of which each rank puts in `input` bytes: an
/// all-gather's is the sum over ranks.
[[nodiscard]] double array_bytes(network::CollectivePattern kind, std::uint64_t input,
                                 std::uint32_t ranks);

/// Ranks 0 to n-1 on consecutive GPUs of a cluster.
class CollectiveModel {
 public:
  /// A cluster with NICs gets as many nodes as the ranks need (said in `notes`); one without that
  /// is too small is a fault.
  [[nodiscard]] static Result<CollectiveModel> make(hardware::ClusterSpec cluster,
                                                    std::uint32_t ranks,
                                                    std::vector<std::string>& notes);

  /// Alone on the cluster, between all ranks, or those listed: a send goes from the first of them
  /// to the second.
  [[nodiscard]] Duration time(network::CollectivePattern kind, double array,
                              std::vector<std::uint32_t> listed = {});
  /// The array that takes `span`, to one part in a thousand; nothing: even one byte takes longer.
  [[nodiscard]] std::optional<double> array_for(network::CollectivePattern kind, Duration span);

 private:
  CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks);

  network::Topology topology_;
  network::Group group_;
  std::map<std::tuple<network::CollectivePattern, double, std::vector<std::uint32_t>>, Duration>
      times_;
};

/// The times of collectives on a cluster, rank n on its GPU n. Each is alone on its links. Fault,
/// when asked: a cluster that is too small for the job.
[[nodiscard]] traces::CollectiveTimes collective_times(hardware::ClusterSpec cluster);

// How much longer a recorded kernel takes on another device, by the roof that its name puts it
// under (sim/model/kernel_time.hpp has the formula).
//
// A recording has no shapes of operands, so nothing finer is known: tiles and waves that fit one
// device better than the other are not modelled.

/// A device and how well kernels use it.
struct RooflineDevice {
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
};

/// The precision in which a product's kernel computes, by the words that cuBLAS, cuDNN, CUTLASS and
/// nvjet put in its name ("bf16", "f16_s16816gemm", "h884", "tf32", "sgemm"); nothing: no word.
[[nodiscard]] std::optional<model::Precision> precision_of(std::string_view kernel_name);

/// A name without a precision counts as bfloat16, or what `from` computes that in.
[[nodiscard]] KernelRatio kernel_ratio(RooflineDevice from, RooflineDevice to);

}  // namespace bubblesim::synth

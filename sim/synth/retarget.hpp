// Predicts a captured data-parallel job with another number of replicas, on another interconnect,
// or on another device.
//
// Collectives of all ranks are the data-parallel ones. Each rank's span in such a collective, from
// the last rank's arrival to its own end, is the recorded span times
//
//   model(new cluster, new replicas) / model(recorded cluster, recorded replicas)
//
// with the network's cost of a collective alone (sim/network/topology.hpp), so that an unchanged
// cluster reproduces the recording. If the recorded cluster is not named, the span is the model's.
// A collective's array keeps its recorded size: gradients and parameters do not depend on the
// number of replicas. The caller gives the ratio of kernels' times; hosts stay as recorded.
//
// Every assumption beyond the recording is reported, with counters and in `extrapolated`.
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

/// The time of a kernel on the new device over that on the recorded one; > 0. Called once for each
/// name and class of a rank.
using KernelRatio = std::function<double(std::string_view name, program::KernelClass)>;

struct DeviceChange {
  hardware::GpuSpec device;
  KernelRatio ratio;
};

/// Whether copies of recorded ranks are simulated.
enum class Copies : std::uint8_t {
  kUnfolded,  ///< each copy is simulated
  kFolded,    ///< no copy is simulated: it would arrive with its original, so times are the same
};

struct RetargetSpec {
  std::uint32_t replicas = 0;  ///< ranks of the new job; 0: the recorded number
  Copies copies = Copies::kUnfolded;
  std::optional<hardware::ClusterSpec> recorded_cluster{};  ///< nothing: not known
  std::optional<hardware::ClusterSpec> cluster{};           ///< nothing: the recorded one
  std::optional<DeviceChange> device{};                     ///< nothing: the recorded one
};

struct Retargeted {
  workload::JobProgram job;
  std::uint32_t replicas = 0;              ///< of the real job, including folded ones
  std::vector<std::string> extrapolated;   ///< a sentence for each assumption
  CounterSet counters;                     ///< also in job.counters
};

/// Faults: a job that was not captured; a new number of replicas for a job that is not purely
/// data-parallel (it has transfers or collectives between some ranks, or no collective of all
/// ranks); a new number without a modelled cluster; more ranks than a cluster without NICs has
/// GPUs.
[[nodiscard]] Result<Retargeted> retarget(workload::JobProgram job, const RetargetSpec& spec);

// Modelled times of a recorded job's collectives on one cluster: for retarget(), and for recordings
// of collectives' sizes without times.

/// The network's pattern for a recorded kind: a reduce moves the bytes of a broadcast in reverse; a
/// barrier is an all-reduce of one element. Nothing: an unknown kind, or a kind between only some
/// ranks.
[[nodiscard]] std::optional<network::CollectivePattern> network_kind(traces::CollectiveKind kind);

/// The times of collectives on consecutive GPUs of a cluster, for ranks 0 to n-1.
class CollectiveModel {
 public:
  /// A cluster with NICs gets as many nodes as the ranks need, with a sentence in `notes`. Fault: a
  /// cluster without NICs that is too small.
  [[nodiscard]] static Result<CollectiveModel> make(hardware::ClusterSpec cluster,
                                                    std::uint32_t ranks,
                                                    std::vector<std::string>& notes);

  /// The time of a collective alone on the cluster, between all ranks or the `listed` ones; a send
  /// goes from the first listed rank to the second.
  [[nodiscard]] Duration time(network::CollectivePattern kind, double array,
                              std::vector<std::uint32_t> listed = {});
  /// The array whose time is `span`, to one part in a thousand; nothing: even one byte takes
  /// longer.
  [[nodiscard]] std::optional<double> array_for(network::CollectivePattern kind, Duration span);

 private:
  CollectiveModel(hardware::ClusterSpec cluster, std::uint32_t ranks);

  network::Topology topology_;
  network::Group group_;
  std::map<std::tuple<network::CollectivePattern, double, std::vector<std::uint32_t>>, Duration>
      times_;
};

/// A function for the times of collectives on a cluster, rank n on GPU n, each alone on its links.
/// The function's fault: a cluster too small for the job.
[[nodiscard]] traces::CollectiveTimes collective_times(hardware::ClusterSpec cluster);

// The factor on a recorded kernel's time on another device, by the roof (compute or memory) that
// its name suggests (sim/model/kernel_time.hpp has the formula).
//
// A recording has no shapes of operands, so tiles and waves that fit one device better than the
// other are not modelled.

/// A device and the efficiency of kernels on it.
struct RooflineDevice {
  hardware::GpuSpec gpu;
  model::Efficiency efficiency;
};

/// The precision of a product's kernel, by the words in names of cuBLAS, cuDNN, CUTLASS and nvjet
/// ("bf16", "f16_s16816gemm", "h884", "tf32", "sgemm"); nothing: no word.
[[nodiscard]] std::optional<model::Precision> precision_of(std::string_view kernel_name);

/// A kernel name without a precision counts as bfloat16, or as its computed_in() on each device.
[[nodiscard]] KernelRatio kernel_ratio(RooflineDevice from, RooflineDevice to);

}  // namespace bubblesim::synth

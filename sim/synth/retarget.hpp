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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/workload/job_program.hpp"

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

}  // namespace bubblesim::synth

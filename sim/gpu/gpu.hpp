// One GPU: the placement of kernels' blocks, their speed beside each other, the context that runs.
//
// A kernel is `blocks` equal blocks; alone, it runs in waves of as many blocks as fit, and lasts
// exactly its solo duration. Blocks are placed leftover-first (Amert et al., RTSS 2017; Elvinger et
// al., SoCC 2025): clients by priority, then work by arrival; the head of a priority level places
// all of its blocks before the next kernel places any. On a device of ClientOrder::kEven, processes
// of an MPS server with one priority get equal shares of the room instead. Resident blocks are
// never evicted: a new kernel waits until a wave drains. Resident kernels slow each other through
// DRAM bandwidth, L2 and issue slots. Clients of one context share spatially (as under MPS);
// contexts have the GPU in time slices, during which the others' blocks stand still, or have
// partitions of their own (MIG). Two further modes give bounds that no GPU reaches. A client can be
// driven off the GPU in four ways (program::Preemption).
//
// The caller handles stream order, launch latency and dependencies, and submits work when it may
// start. The class is not thread-safe; all calls happen inside events of one Engine.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/program/kernel_profile.hpp"
#include "sim/program/kinds.hpp"

namespace bubblesim::gpu {

struct SharingSetup {
  program::SharingMode mode = program::SharingMode::kSpatial;
  Duration slice{};        ///< kTimeSliced: > 0
  Duration switch_cost{};  ///< kTimeSliced: device idle between slices, >= 0
  std::optional<Duration> empty_switch{};  ///< if no blocks are on the SMs (SwitchCost)
  bool others_share = false;  ///< kTimeSliced: all clients but the first share one context
};

/// No cap: every SM of the device.
inline constexpr std::uint32_t kAllSms = std::numeric_limits<std::uint32_t>::max();

/// A process that uses the GPU.
struct ClientSetup {
  std::string name;
  std::int32_t priority = 0;          ///< a larger one is placed first
  std::uint32_t sm_cap = kAllSms;     ///< SMs that its resident blocks may cover, >= 1
  program::OwnKernels own_kernels = program::OwnKernels::kCompete;
  Duration slice{};                   ///< kTimeSliced: the client's own slice; 0: SharingSetup's
                                      ///< slice
  double bandwidth = 1;               ///< kPartitioned: share of the DRAM bandwidth, (0, 1]
};

/// One device operation whose stream and dependencies let it start now.
struct Work {
  ClientId client;
  program::WorkKind kind = program::WorkKind::kKernel;
  Duration solo{};                         ///< alone on the GPU; kCollective: ignored
  const program::KernelProfile* profile = nullptr;  ///< kKernel, kCollective; outlives the work
  std::uint64_t cookie = 0;                ///< handed back to the listener
  std::uint64_t most_blocks = 0;           ///< kKernel: resident at once; 0: as many as fit
};

/// A launched operation that waits for at most this long counts as in its channel, so that its
/// context is not out of work (Gpu::announce): such delays are the GPU's own latencies between
/// operations. Longer delays are waits that the recording does not explain.
inline constexpr Duration kInChannel = std::chrono::microseconds(20);

/// Names work between its submission and its end.
using WorkId = StrongId<struct WorkTag>;

/// Hears of a client's work. Calls come from inside Gpu's events or from submit(); they may submit
/// more work.
class WorkListener {
 public:
  virtual ~WorkListener() = default;
  /// The first blocks are resident (kernels), or the operation runs. A collective has started
  /// when all of its blocks are resident; from then on it holds them.
  virtual void on_work_started(std::uint64_t cookie, WorkId work, SimTime now) = 0;
  /// Started work stands still from now on: another context has the GPU, or its client was driven
  /// off the GPU and the last resident block has ended.
  virtual void on_work_paused(std::uint64_t /*cookie*/, SimTime /*now*/) {}
  virtual void on_work_resumed(std::uint64_t /*cookie*/, SimTime /*now*/) {}
  /// Whether more of its operations are launched than run, so that its channel has work to fetch.
  /// Called under kTimeSliced.
  [[nodiscard]] virtual bool has_more_launched() const { return false; }
  /// Finished; `work` may be reused after the call.
  virtual void on_work_finished(std::uint64_t cookie, SimTime now) = 0;
};

/// Sets the clock at which kernels run.
class Governor {
 public:
  virtual ~Governor() = default;
  /// The clock, as a share (0, 1] of the device's full clock, of a kernel submitted now: the part
  /// of its time that DRAM does not bound grows by 1 / clock (hardware/power_spec.hpp). Times never
  /// go back.
  virtual double clock_at(SimTime now) = 0;
};

/// One client's use of the GPU since the start.
struct ClientUsage {
  double sm_seconds = 0;     ///< integral over time of SMs covered by its resident blocks
  std::uint64_t resets = 0;  ///< kernels that started over
};

class Gpu final : public engine::EventHandler {
 public:
  Gpu(engine::Engine& engine, const hardware::GpuSpec& spec, const SharingSetup& sharing);
  ~Gpu() override;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Must be called before the first submission. `listener` outlives the GPU.
  ClientId add_client(const ClientSetup& setup, WorkListener& listener);

  /// Hands over work that may start now. on_work_started may be called before this returns.
  WorkId submit(const Work& work);

  /// Announces that an event already scheduled for now will submit an operation; the GPU computes
  /// its next completion only after the last such submission. Calls are counted.
  void expect_submission();

  /// Sets when a started collective ends: at `end` or, time-sliced, at the first moment from then
  /// on at which its context has the GPU. Until the end, `end` may be changed; >= now;
  /// SimTime::max(): not known.
  void finish_collective(WorkId work, SimTime end);

  /// Bounds future placements; resident blocks stay.
  void set_sm_cap(ClientId client, std::uint32_t sm_cap);
  void set_priority(ClientId client, std::int32_t priority);
  /// kTimeSliced: takes effect at the client's next slice; > 0.
  void set_slice(ClientId client, Duration slice);

  /// Drives the client's kernels off the GPU; collectives that have started are left alone. The
  /// client stays off until proceed(), after which its kernels are placed by priority and arrival.
  /// Precondition: kContextSwitch only if kTimeSliced.
  void preempt(ClientId client, program::Preemption how);
  void proceed(ClientId client);

  /// Sets the governor of each kernel from now on; null, the default: the clock is GpuSpec::clock.
  /// The governor outlives the GPU's last event.
  void set_governor(Governor* governor);

  /// An operation of the client is in its channel and will be submitted soon: until retract() its
  /// context keeps its slice, as if it had work. Calls are counted. No effect unless kTimeSliced.
  void announce(ClientId client);
  void retract(ClientId client);

  [[nodiscard]] ClientUsage usage(ClientId client) const;
  /// Appends to `log` what is added to SM time from now on, in SM-ns; null: nothing any more.
  void log_sm_ns(std::vector<double>* log);
  /// Adds a log's SM time to the client's.
  void add_sm_ns(ClientId client, std::span<const double> log);
  [[nodiscard]] const hardware::GpuSpec& spec() const;
  [[nodiscard]] program::SharingMode mode() const;
  /// Whether contexts can lose the GPU while they have work on it: listeners hear of such pauses.
  [[nodiscard]] bool freezes_contexts() const;

  void on_event(SimTime now) override;

 private:
  class Model;
  std::unique_ptr<Model> model_;
};

}  // namespace bubblesim::gpu

// The policy contract: what a policy sees, and what it may decide.
//
// One policy object decides for one GPU: for the protected client, which is a rank of the training
// job (or, in tables of measured pairs, an inference service), and the filler clients beside it,
// inference or training. It sees what a real system sees (launches with grid and block, completions
// with the delay of noticing them, the clock, memory, the profiles that it declared), never the
// simulator's inside and never the future. It knows no simulated time: instants are spans since the
// policy was started, so that a wall clock on a real GPU can drive the same object.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/mig_geometry.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"
#include "sim/program/kinds.hpp"

namespace bubblesim::policy {

using program::KernelClass;
using program::LaunchForm;
using program::Preemption;
using program::SharingMode;
using program::WorkKind;

/// Time since the policy's start.
using Instant = Duration;

enum class Role : std::uint8_t { kTraining, kOffline, kOnline };

/// One process on the policy's GPU.
struct ClientInfo {
  ClientId id;  ///< 0 is the protected client
  Role role = Role::kTraining;
  std::string name;
  Bytes memory;             ///< device memory that it holds; 0: not known
  bool memory_known = false;
  Duration pass{};      ///< of a filler, on a GPU of its own; only if the policy declared
                        ///< kernel_durations; 0: not known
  bool queued = false;  ///< it processes fill jobs, and holds its memory only while a job is placed
                        ///< here
  std::uint32_t ranks = 1;  ///< training: GPUs of its job, each with a rank and a policy of its
                            ///< own; 1 if not known
};

/// The GPU as nvidia-smi and the CUDA device query show it.
struct GpuInfo {
  std::string name;
  std::uint32_t sm_count = 0;
  std::uint32_t tpc_sms = 2;  ///< SMs of a TPC, which a cap takes together
  Bytes memory;
  Duration time_slice{};            ///< 0: not known, as on a GPU already in use
  Duration context_switch{};
  BytesPerSecond dram_bandwidth{};
  BytesPerSecond host_bandwidth{};  ///< of the link to host memory; 0: not known
  MigGeometry mig{};
  bool priority_changes = true;  ///< of running clients; false at a gate
  std::uint32_t compute_capability = 0;  ///< 86 for 8.6; 0: not known
};

/// A launch call that a host thread makes.
struct LaunchInfo {
  ClientId client;
  WorkKind kind = WorkKind::kKernel;
  std::uint64_t blocks = 0;  ///< grid.x * grid.y * grid.z; 0 for copies and memsets
  std::uint32_t threads_per_block = 0;
  std::uint64_t launch = 0;  ///< the client's launches so far, this one included
  Duration profiled{};       ///< solo duration; only if the policy declared kernel_durations
  std::uint32_t operations = 1;  ///< device operations of this call; a CUDA graph has many
  std::uint64_t sm_blocks = 0;   ///< its blocks that the GPU holds at once (CUDA's occupancy
                                 ///< calculator, on all SMs); 0: not known
  std::uint64_t kernel = 0;      ///< equal for launches of one function by one client
  KernelClass bound = KernelClass::kUnknown;  ///< only if the policy declared kernel_classes
  bool waits = true;  ///< its thread waits for the verdict; else it has gone on, and this is a
                      ///< report
};

/// A device operation that ended; reported after the device's completion-notice delay, only if the
/// policy declared completions. A launch of several operations gives one report for each.
struct CompletionInfo {
  ClientId client;
  WorkKind kind = WorkKind::kKernel;
  std::uint64_t launch = 0;  ///< which launch ended
};

/// A bubble of the training job, measured beforehand, that begins now; only for policies that
/// declared bubbles. On a real system, the instruction that the training engine executes.
struct BubbleInfo {
  Duration expected{};     ///< measured length
  Bytes free_memory;       ///< during the bubble; 0: not known
  bool pipeline = false;   ///< waits for a pipeline peer; false: any other idle time
};

/// A training iteration has ended, or a pass of a client that serves requests; only for policies
/// that declared iterations. On a real system, marks of the framework.
struct IterationInfo {
  ClientId client;
  std::uint64_t number = 0;  ///< from 1 on
  Duration length{};         ///< since the previous end; a pass: since its first launch
};

enum class Verdict : std::uint8_t {
  kAdmit,  ///< the launch goes to the driver now
  kHold,   ///< the calling thread waits inside the launch call until the policy releases it
};

/// How clients share the GPU, decided once before the start.
struct Sharing {
  SharingMode mode = SharingMode::kSpatial;
  std::optional<Duration> slice = std::nullopt;        ///< kTimeSliced; nothing: the device's own
  std::optional<Duration> switch_cost = std::nullopt;  ///< kTimeSliced; nothing: the device's own
  bool unified_memory = false;          ///< memory may be oversubscribed: no filler is refused for
                                        ///< its memory
  bool changing_slices = false;         ///< kTimeSliced: slices are set while clients run
  bool fillers_share = false;  ///< kTimeSliced: all fillers share one context, with the first
                               ///< filler's slice
};

/// How one client is set up, decided once before the start.
struct ClientSharing {
  std::uint32_t sm_percentage = 100;  ///< MPS active-thread percentage, 1..100
  std::int32_t priority = 0;          ///< larger is placed first
  std::uint32_t sms = 0;              ///< exactly this many SMs (green context, MIG); 0: by
                                      ///< percentage
  double memory_share = 1;            ///< kPartitioned: of the DRAM bandwidth and of the memory
  /// kTimeSliced: its own slice; nothing: Sharing's.
  std::optional<Duration> slice = std::nullopt;
  /// The most that it may allocate; a client that needs more is not admitted.
  std::optional<Bytes> memory_limit = std::nullopt;
  /// The part of its memory on the device, with the rest behind the host link (unified memory);
  /// nothing: as much as fits.
  std::optional<Bytes> resident = std::nullopt;
};

/// Whether a filler may run on the GPU at all.
struct Admission {
  bool admitted = true;
  std::string reason;  ///< why it may not
};

/// What a policy may do during any of its calls. Checked: releasing a client that is not held, a
/// percentage outside 1..100, a slice without time slicing, and the like end the run with the
/// policy's name, the time and the reason.
class Actions {
 public:
  virtual ~Actions() = default;
  /// Lets the oldest held launch of the client go on. held() drops at once; the launch's thread
  /// goes on after the policy's present call has returned, and asks for no second verdict.
  virtual void release(ClientId client) = 0;
  /// Number of the client's held launches (at most one for each host thread).
  [[nodiscard]] virtual std::size_t held(ClientId client) const = 0;
  /// The oldest held launch. Precondition: held(client) > 0.
  [[nodiscard]] virtual const LaunchInfo& oldest_held(ClientId client) const = 0;
  virtual void set_sm_percentage(ClientId client, std::uint32_t percentage) = 0;
  virtual void set_priority(ClientId client, std::int32_t priority) = 0;
  /// kTimeSliced: the length of the client's slices from its next one on. > 0.
  virtual void set_time_slice(ClientId client, Duration slice) = 0;
  /// Drives the client's kernels off the GPU, and keeps them off until proceed(). Collectives are
  /// not affected. If called again, the stronger kind counts.
  virtual void preempt(ClientId client, Preemption how) = 0;
  virtual void proceed(ClientId client) = 0;
  /// Sets the form of the client's next launch that goes on, by this call's verdict or a release.
  virtual void reshape(ClientId client, const LaunchForm& form) = 0;
  /// Moves the client's memory until this much of it is on the device; kernels that start then
  /// reach the rest through the host link.
  virtual void set_resident_memory(ClientId client, Bytes resident) = 0;
  /// Whether the client's launches from now on ask and wait for a verdict, which delays each, or
  /// only tell. At the start fillers ask, and training if the policy declares so
  /// (PolicySpec::training_gate). Launches under way stay as they were: see LaunchInfo::waits.
  virtual void set_asking(ClientId client, bool asks) = 0;
};

/// A sharing policy for one GPU. Calls come one at a time, at non-decreasing instants.
class Policy {
 public:
  virtual ~Policy() = default;

  /// First call. `clients[0]` is the protected client; `clients[i].id` is i.
  virtual Sharing start(const GpuInfo& gpu, std::span<const ClientInfo> clients) = 0;
  /// Called after start(), once a client, in order.
  virtual ClientSharing share(const ClientInfo& client);
  /// Called after share(), once for each filler. The default admits it if its memory fits or is not
  /// known.
  virtual Admission admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu);

  /// A host thread of any client makes a launch call. Returns the verdict; the default admits.
  virtual Verdict on_launch(const LaunchInfo& launch, Instant now, Actions& actions);
  virtual void on_completion(const CompletionInfo& completion, Instant now, Actions& actions);
  virtual void on_bubble_begin(const BubbleInfo& bubble, Instant now, Actions& actions);
  /// The training client's first launch or completion after a bubble.
  virtual void on_bubble_end(Instant now, Actions& actions);
  virtual void on_iteration(const IterationInfo& iteration, Instant now, Actions& actions);
  /// A filler's process has ended: none of its launches is held any more, and no more will come.
  virtual void on_gone(ClientId client, Instant now, Actions& actions);

  /// When on_tick is to be called next; asked after start and after every other call. A past
  /// instant means at once. Nothing: never.
  [[nodiscard]] virtual std::optional<Instant> next_tick() const;
  virtual void on_tick(Instant now, Actions& actions);

  /// Called once, after the last call: adds notes for the reader of the result. The default adds
  /// nothing.
  virtual void add_counts(CounterSet& counters) const;
};

}  // namespace bubblesim::policy

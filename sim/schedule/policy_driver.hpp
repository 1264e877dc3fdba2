// Calls a policy at its decision points on one GPU, checks its decisions and applies them.
//
// The simulator's counterpart of the real-GPU gate: launches pass through it before the driver,
// completions reach the policy after the device's notice delay, ticks come from the engine's
// clock. An illegal decision stops the run with the policy's name, the time and the reason.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/policy/policy.hpp"
#include "sim/schedule/bubble_table.hpp"
#include "sim/workload/launch.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::schedule {

/// What a policy decided before the start.
struct GpuPlan {
  gpu::SharingSetup sharing;
  std::vector<gpu::ClientSetup> clients;      ///< by policy client
  std::vector<policy::Admission> admissions;  ///< by policy client; the training client's: true
  bool unified_memory = false;
  std::vector<Bytes> resident;                ///< of each client's memory, on the device
  policy::Sharing decided;                    ///< as the policy said it, for a real GPU
  std::vector<policy::ClientSharing> decided_shares;  ///< by policy client
};

/// Asks the policy for its decisions before the start; checks them.
[[nodiscard]] Result<GpuPlan> plan_gpu(const policy::PolicySpec& spec, policy::Policy& policy,
                                       const hardware::GpuSpec& gpu,
                                       const std::vector<policy::ClientInfo>& clients);

/// Without a policy: one context, everybody admitted, all memory on the device.
[[nodiscard]] GpuPlan plan_without_policy(const std::vector<policy::ClientInfo>& clients);

/// Decisions that are legal, in the GPU model's terms.
[[nodiscard]] gpu::SharingSetup gpu_sharing(const policy::Sharing& sharing,
                                            const hardware::GpuSpec& gpu);
[[nodiscard]] gpu::ClientSetup gpu_client(const std::string& name,
                                          const policy::ClientSharing& share,
                                          const policy::Sharing& sharing,
                                          const hardware::GpuSpec& gpu);

/// SMs that an MPS active-thread percentage leaves a client: whole TPCs, at least one
/// (research: an 82-SM RTX 3090 at 50 % gives 40 SMs, not 41).
[[nodiscard]] std::uint32_t sm_cap(std::uint32_t percentage, const hardware::GpuSpec& gpu);

/// How often and how long the policy held launches.
struct DriverCounts {
  std::uint64_t calls = 0;
  std::uint64_t holds = 0;
  std::uint64_t released = 0;
  Duration held_time{};  ///< of released launches
  std::uint64_t preemptions = 0;
  std::uint64_t reshaped = 0;  ///< launches in another form
  Bytes migrated;              ///< to or from the device
};

/// Told when a held launch goes on, for timelines.
class HoldListener {
 public:
  virtual ~HoldListener() = default;
  virtual void on_hold_ended(ClientId client, SimTime since, SimTime now) = 0;
};

class PolicyDriver final : public workload::LaunchGate, public policy::Actions {
 public:
  /// `bubbles` may be null unless the policy needs them. All references outlive the driver.
  PolicyDriver(engine::Engine& engine, gpu::Gpu& gpu, const policy::PolicySpec& spec,
               policy::Policy& policy, const BubbleTable* bubbles, HoldListener* holds);
  ~PolicyDriver() override;

  /// In order of policy clients; a refused filler has no run. Before the start. Of the client's
  /// `memory`, `resident` is on the device; 0: not known.
  void attach(workload::ProgramRun* run, Bytes memory = {}, Bytes resident = {});
  /// Asks for the first tick.
  void start();

  /// From the runs' observers.
  void op_started(const workload::ProgramRun& run, std::uint32_t op, SimTime now);
  void op_finished(const workload::OpRecord& record);
  /// An iteration of training, or a pass of a filler, has ended.
  void iteration_ended(const workload::ProgramRun& run, Duration length, SimTime now);

  [[nodiscard]] const DriverCounts& counts() const { return counts_; }
  /// Of the client's memory, what the policy wants on the device now; 0: not known.
  [[nodiscard]] Bytes resident(ClientId client) const { return clients_[client.index()].resident; }
  /// Launches that are held now.
  [[nodiscard]] std::uint64_t still_held() const;
  /// The illegal decision that stopped the run.
  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

  bool may_launch(const workload::LaunchCall& call, SimTime now) override;

  void release(ClientId client) override;
  [[nodiscard]] std::size_t held(ClientId client) const override;
  [[nodiscard]] const policy::LaunchInfo& oldest_held(ClientId client) const override;
  void set_sm_percentage(ClientId client, std::uint32_t percentage) override;
  void set_priority(ClientId client, std::int32_t priority) override;
  void set_time_slice(ClientId client, Duration slice) override;
  void preempt(ClientId client, program::Preemption how) override;
  void proceed(ClientId client) override;
  void reshape(ClientId client, const policy::LaunchForm& form) override;
  void set_resident_memory(ClientId client, Bytes resident) override;

 private:
  struct HeldLaunch {
    policy::LaunchInfo info;
    std::uint32_t thread = 0;
    SimTime since{};
  };
  struct Client {
    workload::ProgramRun* run = nullptr;
    std::deque<HeldLaunch> held;
    std::uint64_t iterations = 0;
    std::optional<workload::LaunchForm> form;  ///< of its next launch that goes on
    Bytes memory;
    Bytes resident;
  };
  struct Migration {
    SimTime due{};
    std::size_t client = 0;
    Bytes resident;
  };
  struct Notice {
    SimTime due{};
    policy::CompletionInfo info;
  };
  class Timer;

  [[nodiscard]] std::size_t client_of(const workload::ProgramRun& run) const;
  [[nodiscard]] policy::LaunchInfo describe(const workload::LaunchCall& call, std::size_t client);
  [[nodiscard]] policy::Instant instant(SimTime now) const { return now - kSimStart; }
  void begin_call();
  void after_call(SimTime now);
  void end_bubble(SimTime now);
  void tick(SimTime now);
  void deliver_notices(SimTime now);
  void end_migrations(SimTime now);
  [[nodiscard]] workload::ProgramRun* run_of(ClientId client, std::string_view what);
  void apply_form(std::size_t client);
  static void place_memory(const Client& client, Bytes resident);
  void begin_bubble(std::uint32_t op, SimTime now);
  void refuse(const std::string& reason);

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  const policy::PolicySpec& spec_;
  policy::Policy& policy_;
  const BubbleTable* bubbles_;
  HoldListener* holds_;
  std::vector<Client> clients_;
  struct Released {
    std::size_t client = 0;
    HeldLaunch launch;
    std::optional<workload::LaunchForm> form;
  };
  std::vector<Released> released_;
  std::deque<Notice> notices_;
  std::unique_ptr<Timer> ticks_;
  std::unique_ptr<Timer> notice_timer_;
  std::deque<Migration> migrations_;  ///< by due
  std::unique_ptr<Timer> migration_timer_;
  std::uint32_t training_running_ = 0;  ///< operations other than collectives
  bool bubble_open_ = false;
  bool bubble_end_due_ = false;  ///< the policy has not been told yet
  bool in_call_ = false;         ///< of the policy: what its decisions start waits for its return
  SimTime last_tick_{};
  std::uint32_t ticks_in_instant_ = 0;
  DriverCounts counts_;
  std::optional<Error> fault_;
};

}  // namespace bubblesim::schedule

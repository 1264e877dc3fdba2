// The model behind Gpu: contexts, transfers, time slices, and the listeners' calls.
//
// Every call and event makes one `update`: let time pass, remove ended work, place waiting work,
// then call the listeners. Listeners may submit work from inside their calls; such work is only
// queued, and the update repeats until nothing is new.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/gpu/context.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/gpu/time_slicer.hpp"
#include "sim/gpu/transfers.hpp"
#include "sim/gpu/work_table.hpp"

namespace bubblesim::gpu {

class Gpu::Model {
 public:
  Model(engine::Engine& engine, Gpu& handler, const hardware::GpuSpec& spec,
        const SharingSetup& sharing);

  ClientId add_client(const ClientSetup& setup, WorkListener& listener);
  WorkId submit(const Work& work);
  void expect_submission() {
    const SimTime now = engine_.now();
    expected_ = expected_at_ == now ? expected_ + 1 : 1;
    expected_at_ = now;
  }
  void finish_collective(WorkId work, SimTime end);
  void set_sm_cap(ClientId client, std::uint32_t sm_cap);
  void set_priority(ClientId client, std::int32_t priority);
  void set_slice(ClientId client, Duration slice);
  /// Without `how`, lets the client's kernels run again.
  void drive_off(ClientId client, std::optional<program::Preemption> how);
  void set_governor(Governor* governor) { governor_ = governor; }
  void announce(ClientId client);
  void retract(ClientId client);
  [[nodiscard]] ClientUsage usage(ClientId client) const;
  [[nodiscard]] Usage& books() { return shared_.usage; }
  [[nodiscard]] const hardware::GpuSpec& spec() const { return shared_.spec; }
  [[nodiscard]] program::SharingMode mode() const { return mode_; }
  void on_event(SimTime now);

 private:
  /// The index of the client's context.
  [[nodiscard]] std::size_t index_of(ClientId client) const {
    return std::min<std::size_t>(client.index(), contexts_.size() - 1);
  }
  [[nodiscard]] Context& context_of(ClientId client) { return contexts_[index_of(client)]; }
  [[nodiscard]] std::span<const ClientState> clients_of(std::size_t context) const;
  [[nodiscard]] Duration at_clock(const Work& work);
  void size_grid(WorkState& state) const;
  void update(SimTime now);
  void queue(WorkId id, SimTime now);
  inline void step(SimTime now);
  inline void settle_live(SimTime now);
  void add_context(const ClientSetup& setup);
  void note_caps();
  [[nodiscard]] bool lives(std::size_t context) const;
  [[nodiscard]] bool bound() const;
  [[nodiscard]] bool one_context() const {
    return mode_ == program::SharingMode::kSpatial || mode_ == program::SharingMode::kMps;
  }
  [[nodiscard]] bool suspended(std::size_t context) const;
  void hand_leftover(SimTime now);
  void run_transfers(SimTime now);
  void take_turns(SimTime now);
  void note_work(SimTime now);
  void tell(SimTime now);
  void tell_finished(WorkId id, SimTime now);
  void reschedule(SimTime now) {
    if (expected_ == 0 || !may_wait_for_submission(now)) schedule_next(now);
  }
  void schedule_next(SimTime now);
  [[nodiscard]] bool may_wait_for_submission(SimTime now) const;

  // Kernels that are alone on the GPU (gpu_model_alone.cpp).
  [[nodiscard]] bool may_run_alone(const Work& work) const;
  void begin_alone(WorkId id, SimTime now);
  void end_alone(SimTime now);
  void leave_alone();
  [[nodiscard]] double alone_sm_ns(ClientId client, SimTime now) const;

  // Kernels that begin at once, or end, beside others (gpu_model_beside.cpp).
  [[nodiscard]] bool begin_beside(WorkId id, SimTime now);
  [[nodiscard]] bool end_beside(SimTime now);
  void end_call(SimTime now);

  /// A kernel that has the GPU to itself, unknown to its context. When another kernel arrives, its
  /// context adopts it first.
  struct Alone {
    WorkId work;
    SimTime since;
  };

  engine::Engine& engine_;
  SharedState shared_;
  program::SharingMode mode_;
  bool others_share_;
  Governor* governor_ = nullptr;   ///< null: the spec's clock
  /// One for all clients if one_context(). Two if bound() or `others_share_`: the first client's,
  /// and a common one for the others. Else one for each client.
  std::vector<Context> contexts_;
  std::optional<TimeSlicer> slicer_;
  std::vector<std::uint32_t> announced_;  ///< time slices: by context
  std::vector<std::size_t> live_;  ///< the contexts that have the GPU
  std::optional<Alone> alone_;
  Transfers transfers_;
  engine::EntityId entity_;
  std::uint64_t arrivals_ = 0;
  SimTime scheduled_ = SimTime::max();  ///< the time scheduled in the engine for this GPU
  std::uint32_t expected_ = 0;          ///< announced submissions at `expected_at_`
  SimTime expected_at_ = kSimStart;
  bool updating_ = false;
  bool needs_update_ = false;
  bool event_ = false;  ///< the engine called the update, for a due change
};

}  // namespace bubblesim::gpu

// The moving parts of a ProgramRun; included by its implementation files only.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/program/rules.hpp"
#include "sim/workload/followers.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::workload {

/// A host thread, with its position in its list of steps.
class ProgramRun::Thread final : public engine::EventHandler {
 public:
  enum class State : std::uint8_t {
    kDone,      ///< at the end of the pass, or not started
    kEnding,    ///< in the last pass: its last call has still to return
    kThinking,  ///< its next call is scheduled
    kHeld,      ///< inside a launch that the gate holds
    kWaiting,   ///< inside a call that waits for the device
    kAwaiting,  ///< waits for another thread's hand-over
  };

  Thread(ProgramRun& owner, const program::ThreadProgram& steps, std::uint32_t number)
      : run(owner), program(steps), index(number) {}
  void on_event(SimTime now) override { run.call(*this, now); }
  [[nodiscard]] const program::Step& step() const { return program.steps[next]; }

  ProgramRun& run;
  const program::ThreadProgram& program;
  std::uint32_t index;
  engine::EntityId entity{};
  State state = State::kDone;
  std::size_t next = 0;          ///< index of the present or next step
  std::uint64_t pass = 0;        ///< passes that this thread has ended
  std::uint64_t steps_done = 0;  ///< over all passes
  SimTime last_end{};            ///< end of the previous step
  Duration host_done{};          ///< think times and costs of the steps done, over all passes
  SimTime pass_begin{};
  Followers<std::pair<std::uint32_t, std::uint32_t>> followers;  ///< RunSetup::place, thread

  // kWaiting: until result `wait_slot` has ended `wait_count` times, or `wait_stream` has ended
  // `wait_count` operations, or (if neither is set) each stream has ended its `device_counts`.
  std::uint32_t wait_stream = program::kNoIndex;
  std::uint32_t wait_slot = program::kNoIndex;
  std::uint64_t wait_count = 0;
  std::vector<std::uint64_t> device_counts;  ///< by stream
  SimTime call_start{};
  SimTime call_end{};            ///< when the call's own cost has passed
  std::uint64_t launch = 0;      ///< number of its last launch call
  bool relaunch = false;         ///< waits for room in a stream's queue, then launches
  program::LaunchForm form;      ///< of the present launch
};

/// An operation launched and not yet ended.
struct ProgramRun::PendingOp {
  std::uint32_t op = 0;
  std::uint32_t most_blocks = 0;  ///< 0: as many as fit
  std::uint64_t pass = 0;
  std::uint64_t launch = 0;  ///< LaunchCall::number
  SimTime ready{};  ///< launch time plus launch lag
  double slowdown = 1;
  bool counts = false;  ///< the first of its call, which takes a place in the launch queue
};

/// First in, first out; grows to the largest number ever pending, and then allocates no more.
class ProgramRun::PendingQueue {
 public:
  PendingQueue() : slots_(16) {}
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const PendingOp& front() const { return slots_[head_]; }
  void pop() {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void push(const PendingOp& pending) {
    if (size_ == slots_.size()) [[unlikely]] grow();
    PendingOp& slot = slots_[(head_ + size_) & (slots_.size() - 1)];
    // Member by member: a copy by blocks of 16 bytes would wait for members that were just set.
    slot.op = pending.op;
    slot.most_blocks = pending.most_blocks;
    slot.pass = pending.pass;
    slot.launch = pending.launch;
    slot.ready = pending.ready;
    slot.slowdown = pending.slowdown;
    slot.counts = pending.counts;
    ++size_;
  }

 private:
  void grow() {
    std::vector<PendingOp> larger(slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    }
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<PendingOp> slots_;  ///< a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

/// A stream: one operation at a time, in launch order.
class ProgramRun::Stream final : public engine::EventHandler {
 public:
  enum class State : std::uint8_t { kIdle, kScheduled, kBlocked, kRunning };

  Stream(ProgramRun& owner, std::uint32_t number) : run(owner), index(number) {}
  void on_event(SimTime now) override { run.submit(*this, now); }

  ProgramRun& run;
  std::uint32_t index;
  engine::EntityId entity{};
  State state = State::kIdle;
  PendingQueue pending;            ///< front: the running or next operation
  std::size_t queued_calls = 0;    ///< pending operations that count
  std::uint64_t launched = 0;
  std::uint64_t ended = 0;
  std::optional<SimTime> last_end;  ///< nothing: no operation has ended
  Duration work_ended{};           ///< own durations of the operations that have ended
  std::uint64_t meetings_ended = 0;
  std::uint64_t meetings_launched = 0;
  gpu::WorkId work{};
  SimTime work_start{};
  SimTime earliest_end{};          ///< of the running operation; max(): when others have arrived
  bool on_gpu = false;             ///< kRunning: it has started on the GPU
  std::optional<Duration> held_for;  ///< time left of a delayed collective
  bool stands = false;             ///< kRunning: its context does not have the GPU
  bool announced = false;          ///< its context is not out of work
  bool arrived = false;            ///< a collective is running, and has begun
  std::uint32_t blocked_on = program::kNoIndex;  ///< result slot
};

}  // namespace bubblesim::workload

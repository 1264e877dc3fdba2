// The scheduler of a language-model engine: it chooses the requests of the next step, and the
// tokens of each. It knows no clock, GPU or network: a caller reports arrivals and ends of steps.
//
// The rules are those of vLLM's V1 engine (version 0.19; class Scheduler in vllm/v1/core/sched),
// with the further options of scheduler_spec.hpp:
//   1. A step has a budget of tokens. Running sequences come first, in the order in which they were
//      admitted: each takes the tokens that it lacks: one to decode, or a chunk of its prompt.
//   2. If a running sequence needs a block and none is free, the sequence admitted last is
//      preempted (by priority: the least urgent), which may be the one that needs the block. It
//      goes to the front of the queue (by priority: to its place by priority, then arrival), keeps
//      the tokens it has sampled, and computes prompt and output again.
//   3. If no sequence was preempted, waiting requests are admitted in order while budget, sequences
//      and blocks allow (Reserve); the first one that is not admitted ends the step.
//   4. The step that computes a sequence's last known token samples the next one.
//   5. A request that a prefill server hands over (Request::handed) takes the blocks of its prompt
//      when it is admitted, and decodes from its first token on. Once preempted, it is treated like
//      any other request.
//
// Scheduling one ahead (Pacing::kOneAhead): up to two steps are in flight. next_step assumes that
// the step in flight samples its tokens; a preempted sequence still receives its token in flight.
//
// Calls of a caller (StepQueue makes the last two):
//   when a request arrives:  arrive(request); if no step is in flight, next_step(now) until nothing
//   when a step ends:        finish_step(now); the step in flight, if any, starts; next_step(now)
// Steps end in the order in which they were scheduled. Memory grows with requests in flight only. A
// step costs time in proportion to the running sequences. Threads must not share one.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/serving/block_pool.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/serving/step.hpp"

namespace bubblesim::serving {

/// Whether a request was queued at its arrival, or why it was refused.
enum class ArrivalOutcome : std::uint8_t {
  kQueued,
  kLongerThanWindow,  ///< prompt and output exceed max_model_len
  kLargerThanCache,   ///< too large even for the empty cache
  kLargerThanBudget,  ///< Chunking::kWhole: its tokens exceed the budget of a step
};

/// A request in flight.
struct UnfinishedRequest {
  SimTime arrival{};
  std::optional<SimTime> first_token{};  ///< nothing: none yet

  friend bool operator==(const UnfinishedRequest&, const UnfinishedRequest&) = default;
};

class Scheduler {
 public:
  /// Precondition: check(spec).
  explicit Scheduler(const SchedulerSpec& spec);

  /// Whether a request could ever be served by these settings.
  [[nodiscard]] static ArrivalOutcome admissible(const SchedulerSpec& spec, const Request& request);
  /// Takes a request into the queue, or refuses it and counts the refusal.
  ArrivalOutcome arrive(const Request& request);

  /// Schedules a step. Null if as many steps are in flight as Pacing allows, or if no sequence can
  /// compute a token now. The step stays unchanged until it has ended and next_step is called
  /// again.
  [[nodiscard]] const ScheduledStep* next_step(SimTime now);
  /// The oldest step in flight ends. The outcome stays unchanged until the next call.
  /// Precondition: a step is in flight.
  const StepOutcome& finish_step(SimTime now);

  [[nodiscard]] const SchedulerSpec& spec() const { return spec_; }
  [[nodiscard]] std::size_t in_flight() const { return flying_; }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  /// The load by which requests are distributed among data-parallel members: the next one goes to
  /// the least loaded member, the first of equals (vLLM's DPLBAsyncMPClient).
  [[nodiscard]] std::size_t load() const { return 4 * waiting() + running(); }
  /// Whether no request waits or runs.
  [[nodiscard]] bool is_idle() const { return queue_.empty() && running_.empty(); }
  [[nodiscard]] std::uint32_t blocks_used() const { return pool_.used(); }
  [[nodiscard]] std::uint32_t host_blocks_used() const { return host_blocks_used_; }
  [[nodiscard]] const SchedulerCounts& counts() const { return counts_; }
  /// The running request that was admitted first; nothing: no request runs.
  [[nodiscard]] std::optional<std::uint64_t> oldest_running() const;
  /// The requests in flight, by arrival.
  [[nodiscard]] std::vector<UnfinishedRequest> unfinished() const;

 private:
  using Slot = std::uint32_t;

  /// A request in flight. Computed and sampled tokens count those of steps in flight.
  struct Sequence {
    Request request;
    std::vector<BlockIndex> blocks;
    std::uint32_t computed = 0;       ///< tokens whose keys and values the cache holds
    std::uint32_t received = 0;       ///< output tokens that are known
    std::uint32_t sampling = 0;       ///< output tokens of steps in flight
    std::uint32_t prefill_end = 0;    ///< tokens known at its last admission
    std::uint32_t known_blocks = 0;   ///< leading `blocks` that the prefix cache knows
    std::uint32_t lost = 0;           ///< tokens computed before its last preemption
    std::uint32_t swapped_blocks = 0; ///< on the host instead of in the cache
    std::uint32_t host_blocks = 0;    ///< on the host
    std::uint32_t preemptions = 0;
    std::uint32_t checks = 0;         ///< steps that checked drafts of this sequence
    std::uint64_t life = 0;           ///< unique for each use of the slot; 0: the slot is free
    std::int64_t turn = 0;            ///< orders the queue among equals
    bool runs = false;
    SimTime admitted{};
    SimTime first_token{};
    SimTime last_token{};

    [[nodiscard]] std::uint32_t known_tokens() const { return request.prompt_tokens + received; }
  };

  /// A position in the queue.
  struct Place {
    std::int32_t priority = 0;
    std::int64_t turn = 0;
    Slot slot = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  struct Flight {
    ScheduledStep step;
    std::vector<std::uint64_t> lives;  ///< of the step's sequences
    bool ended = false;
  };

  Slot new_slot();
  [[nodiscard]] Place place_of(Slot slot) const;

  void fill_step(SimTime now);
  void renew_priorities();
  void note_peaks();

  // Scheduling of running sequences.
  void schedule_running();
  [[nodiscard]] bool awaits_its_end(const Sequence& sequence) const;
  [[nodiscard]] std::uint32_t drafts_for(const Sequence& sequence, std::uint32_t new_tokens) const;
  [[nodiscard]] std::uint32_t capped(std::uint32_t tokens) const;
  [[nodiscard]] bool make_room(Slot slot, std::uint32_t new_tokens);
  [[nodiscard]] Slot least_urgent() const;
  void preempt(Slot slot);
  [[nodiscard]] bool swap_out(Sequence& sequence);
  [[nodiscard]] bool make_host_room(std::uint32_t blocks);
  void drop_host_copy(Sequence& sequence);
  void count_copies(std::uint32_t blocks);
  void schedule_after_swaps();
  void unschedule(Slot slot);

  // Scheduling of waiting requests.
  void schedule_waiting(SimTime now);
  [[nodiscard]] bool admit(Slot slot, SimTime now);
  [[nodiscard]] std::uint32_t find_prefix(const Sequence& sequence);
  [[nodiscard]] bool has_blocks_for(const Sequence& sequence, std::uint32_t tokens) const;
  [[nodiscard]] std::uint32_t whole_blocks(const Sequence& sequence) const;
  void begin_prefill(Sequence& sequence, std::uint32_t found, SimTime now);
  void swap_in(Sequence& sequence);
  void hold_blocks(Sequence& sequence);

  // Scheduling of running sequences and waiting requests.
  void add_to_step(Slot slot, std::uint32_t new_tokens, std::uint32_t drafts);
  void remember_blocks(Sequence& sequence);
  [[nodiscard]] BlockKey key_of(const Sequence& sequence, std::uint32_t block) const;
  void release(Sequence& sequence);

  void receive(const StepSequence& part, SimTime now);
  [[nodiscard]] std::uint32_t accepted_of(Sequence& sequence, std::uint32_t drafted) const;
  void end(Slot slot, SimTime now);

  SchedulerSpec spec_;
  BlockPool pool_;
  std::vector<Sequence> sequences_;
  std::vector<Slot> unused_;
  std::set<Place> queue_;
  std::vector<Slot> running_;        ///< in the order of admission
  std::array<Flight, 2> flights_;
  std::size_t oldest_flight_ = 0;
  std::size_t flying_ = 0;
  ScheduledStep* step_ = nullptr;    ///< the step that is being scheduled
  std::uint32_t budget_ = 0;         ///< tokens left to step_
  std::size_t next_running_ = 0;     ///< index into running_ of the next sequence to schedule
  std::vector<BlockIndex> prefix_;   ///< blocks found by find_prefix
  std::uint32_t reserved_blocks_ = 0;
  std::uint32_t host_blocks_used_ = 0;
  std::uint64_t lives_ = 0;
  std::int64_t last_turn_ = 0;       ///< last one given to an arrival
  std::int64_t first_turn_ = 0;      ///< next one for a preempted sequence
  std::uint64_t renewed_at_ = 0;     ///< step before the last drawing of priorities
  StepOutcome outcome_;
  SchedulerCounts counts_;
};

/// A step that starts now.
struct StepStart {
  const ScheduledStep* step = nullptr;
  bool queued = false;  ///< it was scheduled while another ran
};

/// The running step and the step scheduled behind it: an engine's loop over its scheduler. The
/// caller says when a step ends.
class StepQueue {
 public:
  /// `scheduler` outlives this object, and only this object schedules and ends its steps.
  explicit StepQueue(Scheduler& scheduler) : scheduler_(scheduler) {}

  /// Schedules as many steps as Pacing allows; returns the step that starts, if any. Call when
  /// requests have arrived and no step runs, and when a step has ended, after handing the arrivals
  /// during the step to the scheduler.
  [[nodiscard]] std::optional<StepStart> refill(SimTime now) {
    std::optional<StepStart> start;
    if (running_ == nullptr && next_ != nullptr) {
      running_ = std::exchange(next_, nullptr);
      start = StepStart{running_, true};
    }
    while (const ScheduledStep* step = scheduler_.next_step(now)) {
      if (running_ != nullptr) {
        next_ = step;
      } else {
        running_ = step;
        start = StepStart{step, false};
      }
    }
    return start;
  }

  /// The running step ends. Precondition: one runs.
  const StepOutcome& finish(SimTime now) {
    running_ = nullptr;
    return scheduler_.finish_step(now);
  }

  /// Null: none runs.
  [[nodiscard]] const ScheduledStep* running() const { return running_; }

 private:
  Scheduler& scheduler_;
  const ScheduledStep* running_ = nullptr;
  const ScheduledStep* next_ = nullptr;
};

}  // namespace bubblesim::serving

// One rank of a recurrence: its threads make their calls in order of time; an operation's end is
// known as soon as the ends of all its dependencies are. Part of recurrence.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/workload/followers.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/recurrence.hpp"

namespace bubblesim::workload {

/// Counts ranks' arrivals, and keeps complete meetings until they are taken.
class MeetingBoard {
 public:
  struct RankArrival {
    std::uint32_t rank;  ///< the rank's position
    std::uint32_t op;
  };
  struct CountedMeeting {
    std::uint32_t needed = 0;  ///< arrivals, not counting the sender
    std::uint32_t sender = program::kNoIndex;  ///< the rank whose send does not wait
    SimTime last = SimTime::min();  ///< last arrival so far
    std::vector<RankArrival> arrivals;
  };

  explicit MeetingBoard(const JobProgram& job);
  void arrive(std::uint32_t collective, const RankArrival& arrival, SimTime at);
  /// Whether the rank's part is a buffered send, which uses send() and does not wait.
  [[nodiscard]] bool is_sender(std::uint32_t collective, std::uint32_t rank) const {
    return meetings_[collective].sender == rank;
  }
  void send(std::uint32_t collective, SimTime at);
  /// Meetings that every rank has reached, each once a pass, with the waiting parts.
  [[nodiscard]] std::optional<CountedMeeting> take_complete();

 private:
  std::vector<CountedMeeting> meetings_;
  std::vector<std::uint32_t> complete_;
};

class RankRecurrence {
 public:
  RankRecurrence(const program::Program& program, std::uint32_t rank, std::uint32_t passes,
                 MeetingBoard& board);

  /// Makes calls until another rank's event might come before the rank's next call.
  void run();
  /// The time of the next known call; SimTime::max() if all threads are done or wait.
  [[nodiscard]] SimTime next_call() const;
  /// Makes that call. Precondition: no rank of the job has an earlier one.
  void make_next_call();
  /// All ranks of the operation's collective have arrived.
  void met(std::uint32_t op, SimTime all_arrived);

  /// Whether a run, which knows an operation's last end only, may hold another operation by the
  /// lag after a later pass's end than the one that it waits for. Precondition: finished().
  [[nodiscard]] bool looks_up_late() const;
  /// Whether every thread is done, and all launched operations have ended.
  [[nodiscard]] bool finished() const;
  /// Whether the result depends on the order of events of one instant, which only an event
  /// simulation knows.
  [[nodiscard]] bool ambiguous() const { return ambiguous_; }
  [[nodiscard]] PassTimes take();

 private:
  struct Thread {
    enum class State : std::uint8_t {
      kDone,
      kCalls,    ///< its next call comes at `at`
      kWaits,    ///< inside a call that waits for operations
      kAwaits,   ///< for another thread's hand-over
    };
    const std::vector<program::Step>* steps = nullptr;
    State state = State::kDone;
    bool relaunches = false;  ///< kWaits: for room in the launch queue; then it launches
    std::size_t next = 0;
    std::uint32_t pass = 0;
    std::uint64_t steps_done = 0;  ///< over all passes
    SimTime at{};             ///< kCalls: of its next call; kWaits: of its present call
    std::uint64_t ticket = 0;  ///< order of calls at one time
    SimTime last_end{};
    SimTime pass_begin{};
    SimTime call_end{};
    Followers<std::uint32_t> followers;
    std::vector<std::uint32_t> waits_for;  ///< into op_ends
    [[nodiscard]] const program::Step& step() const { return (*steps)[next]; }
  };
  struct Pending {
    std::uint32_t op;
    std::uint32_t pass;
    SimTime ready;
  };
  struct Stream {
    std::optional<SimTime> last_end;
    bool meets = false;              ///< the first pending operation has reached its meeting
    std::uint32_t last_op = program::kNoIndex;  ///< into op_ends
    std::vector<Pending> pending;    ///< from `head` on: launched, with an unknown end
    std::size_t head = 0;
    std::vector<std::uint32_t> calls;  ///< of the last launches, into op_ends: a ring
    std::uint64_t call_count = 0;
  };
  /// The next event: a thread's call, or the return of one that waited. Has 16 bytes, which
  /// functions return in registers.
  struct Next {
    SimTime at = SimTime::max();  ///< max(): no event
    std::uint32_t thread = 0;
    bool returns = false;
  };

  [[nodiscard]] Next look_ahead(bool certain_only) const;
  [[nodiscard]] SimTime end_of_wait(const Thread& thread) const;
  /// Into op_ends.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t op, std::uint32_t pass) const {
    return pass * ops_a_pass_ + op;
  }
  [[nodiscard]] bool takes_no_time(std::uint32_t place) const {
    return program_.ops[place % ops_a_pass_].duration == Duration::zero();
  }
  [[nodiscard]] bool is_held_later(const program::Op& op, std::uint32_t place,
                                   const program::OpEdge& edge, std::uint32_t pass) const;
  [[nodiscard]] bool has_ended(std::uint32_t place, SimTime now);
  [[nodiscard]] bool wait_is_over(const Thread& thread);
  [[nodiscard]] bool returns_beyond_doubt(const Thread& thread, SimTime at) const;
  /// The operations that the thread waits for with an end at `at`, into op_ends.
  [[nodiscard]] std::vector<std::uint32_t> ended_at(const Thread& thread, SimTime at) const;
  void go(Next next);
  void call(Thread& thread, SimTime now);
  void launch(Thread& thread, SimTime now);
  void wait(Thread& thread, SimTime now);
  void end_step(Thread& thread, SimTime end, SimTime now);
  void begin_step(Thread& thread, SimTime now);
  void end_pass(Thread& thread, SimTime now);
  void put_on_stream(const Pending& pending);
  bool advance(Stream& stream);
  void advance_all();
  bool begin(Stream& stream, const Pending& pending);
  [[nodiscard]] inline SimTime start_of(const Stream& stream, const Pending& pending) const;
  static void drop_first(Stream& stream);
  void end_op(Stream& stream, const Pending& pending, SimTime end);

  const program::Program& program_;
  std::uint32_t rank_;
  std::uint32_t passes_;
  std::uint32_t ops_a_pass_;
  MeetingBoard& board_;
  std::vector<Thread> threads_;
  std::vector<Stream> streams_;
  std::uint64_t tickets_ = 0;
  std::uint64_t unended_ = 0;  ///< launched operations with an unknown end
  bool ambiguous_ = false;
  PassTimes times_;
};

}  // namespace bubblesim::workload

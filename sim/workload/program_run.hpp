// Runs a program on a GPU: host threads make their calls, streams give operations to the GPU when
// launch, stream order and edges allow, collectives meet the other ranks.
//
// A run repeats its program: training loops until the engine stops; an inference service starts
// each pass. Single-threaded, inside events of one Engine; nothing here allocates in steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/program/program.hpp"
#include "sim/workload/launch.hpp"
#include "sim/workload/meeting_table.hpp"

namespace bubblesim::workload {

/// A thread's action at the end of the program.
enum class Repeat : std::uint8_t {
  kLoop,     ///< it begins the next pass at once
  kOnePass,  ///< it waits for the next start_pass
};

/// A span in which a rank's hosts make no call: a fault, until it is found and the job restarted.
struct Outage {
  SimTime from{};
  SimTime until{};  ///< exclusive
};

/// Slows a rank's device operations (except collectives, whose span is the network's).
struct Perturbation {
  double slowdown = 1.0;          ///< factor, > 0, on operations that begin in the span below
  SimTime from = kSimStart;
  SimTime until = SimTime::max();
  std::vector<Outage> outages{};  ///< in order, not overlapping
  double jitter_cv = 0.0;         ///< of a factor redrawn for each iteration, mean 1, >= 0
  std::uint64_t seed = 0;
  std::string place{};            ///< distinguishes the draws of equally named runs
};

class ProgramRun;

/// The connections of a run. Pointers may be null and outlive the run.
struct RunSetup {
  gpu::ClientSetup client;
  Repeat repeat = Repeat::kLoop;
  std::uint64_t passes = 0;  ///< kLoop: each thread stops after this many; 0: never
  Perturbation perturbation;
  network::Rendezvous* rendezvous = nullptr;  ///< needed if any operation is joined
  LaunchGate* gate = nullptr;
  RunObserver* observer = nullptr;
  /// The runs of the job's ranks, including this one at `place`; null: none.
  const std::vector<ProgramRun*>* ranks = nullptr;
  std::uint32_t place = 0;
};

/// Operations launched by a host that is not a thread of the program.
struct OutsideLaunch {
  std::uint32_t first = 0;  ///< into the program's ops
  std::uint32_t count = 0;
  std::uint64_t pass = 0;    ///< the pass of their edges, from 0 on
  std::uint64_t number = 0;  ///< OpRecord::launch
  double slowdown = 1;       ///< factor on their durations
};

/// The next collective of a stream.
struct NextMeeting {
  std::uint32_t collective = program::kNoIndex;  ///< into JobProgram::collectives; kNoIndex: any
  SimTime earliest{};
};

/// The cause of a run's wait at one instant.
enum class WaitsFor : std::uint8_t {
  kPolicy,  ///< the gate holds a launch
  kRoom,    ///< an operation that may start: for room on the GPU, or its context's slice
  kDevice,  ///< the end of a running operation
  kPeers,   ///< other ranks, in a collective that has begun
  kHost,    ///< only its own host threads
};

struct Wait {
  WaitsFor what = WaitsFor::kHost;
  std::uint32_t op = program::kNoIndex;  ///< which operation; kNoIndex: none
};

class ProgramRun final : public gpu::WorkListener, public network::Participant {
 public:
  /// `program` outlives the run.
  ProgramRun(engine::Engine& engine, gpu::Gpu& gpu, const program::Program& program,
             const RunSetup& setup);
  ~ProgramRun() override;
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// Starts a pass of every thread at `at`. Precondition: none is running (kOnePass: the last pass
  /// has ended). `factor` scales the durations of this pass's operations.
  void start_pass(SimTime at, double factor = 1.0);

  /// Starts a pass of one thread, in a program whose threads are alternatives. Precondition: as
  /// start_pass; the thread has steps and waits for no other.
  void start_thread(std::uint32_t thread, SimTime at);

  /// Lets a held launch of the thread go on now. Precondition: the gate held it.
  void resume(std::uint32_t thread, SimTime now);

  /// Puts the operations on their streams.
  void launch(const OutsideLaunch& outside, SimTime now);

  /// Sets the form of the next call's kernels that go on, by the gate's verdict or a resume.
  void reshape(const program::LaunchForm& form) { form_ = form; }

  /// From now on this share of starting kernels' memory, 0 to 1, is behind the host link: they last
  /// at least as long as moving that part of their DRAM traffic over the link.
  void set_remote_share(double share) { remote_share_ = share; }

  /// The engine that drives it, for observers that end a simulation (Engine::stop).
  [[nodiscard]] engine::Engine& engine() const { return engine_; }
  [[nodiscard]] ClientId client() const { return client_; }
  [[nodiscard]] const program::Program& program() const { return program_; }
  [[nodiscard]] std::uint64_t passes() const { return passes_finished_; }
  /// When the last pass began.
  [[nodiscard]] SimTime pass_start() const { return pass_start_; }
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  /// Launch calls made by its threads.
  [[nodiscard]] std::uint64_t launch_calls() const { return launch_calls_; }
  /// Its present wait; of several, the first in this order: the policy's release, room on the GPU,
  /// the end of a running operation, peers, its own host.
  [[nodiscard]] Wait waits_for() const;
  /// Whether no operation runs or is due, so that only a launch can start device work.
  [[nodiscard]] bool stands_still() const;
  /// Whether no thread is inside a pass and no launched work is left.
  [[nodiscard]] bool idle() const { return running_threads_ == 0 && outstanding_ == 0; }

  /// Appends to `next` each stream's next collective, with the earliest time of arrival: device and
  /// host work before it takes at least its own time. Valid until a collective in which the run
  /// waits is complete. Streams without an arrival before then are left out. An entry for kNoIndex
  /// means that the run may arrive at any collective, from `now` (the present) on.
  void next_meetings(SimTime now, std::vector<NextMeeting>& next) const;

  /// Appends the arrivals within a window that have not been reported yet to `arrivals`.
  void take_arrivals(std::vector<network::Arrival>& arrivals);

  void on_work_started(std::uint64_t cookie, gpu::WorkId work, SimTime now) override;
  void on_work_paused(std::uint64_t cookie, SimTime now) override;
  void on_work_resumed(std::uint64_t cookie, SimTime now) override;
  [[nodiscard]] bool has_more_launched() const override;
  void on_work_finished(std::uint64_t cookie, SimTime now) override;
  void on_all_arrived(std::uint64_t cookie, SimTime now) override;
  [[nodiscard]] bool stands_still(std::uint64_t cookie) const override;
  void on_held(std::uint64_t cookie, SimTime now) override;
  void on_released(std::uint64_t cookie, SimTime now) override;
  [[nodiscard]] bool waits_switched_out(const program::Op& op) const;

 private:
  class Thread;
  class Stream;
  struct PendingOp;
  class PendingQueue;
  /// A stream's work ahead.
  struct Ahead {
    SimTime from;          ///< earliest start of the next operation
    Duration done{};       ///< work over all passes, including the running operation
    std::uint64_t meetings = 0;
  };
  struct OpResult {
    SimTime end{};
    std::uint64_t passes = 0;  ///< how often the operation has ended
  };

  void call(Thread& thread, SimTime now);
  bool launch(Thread& thread, const program::Step& step, SimTime now);
  inline void push(const PendingOp& pending, SimTime now);
  void wait(Thread& thread, const program::Step& step, SimTime now);
  void wait_for_queue(Thread& thread, Stream& stream);
  [[nodiscard]] bool wait_is_over(const Thread& thread) const;
  void end_step(Thread& thread, SimTime end);
  inline void begin_step(Thread& thread);
  [[nodiscard]] std::optional<SimTime> hand_over_end(const program::StepDetail& after,
                                                     const Thread& thread);
  [[nodiscard]] ProgramRun* rank_at(std::uint32_t place);
  [[nodiscard]] inline SimTime past_outages(SimTime call) const;
  void end_thread_pass(Thread& thread);
  void end_pass_if_idle(SimTime now);
  void wake_threads(SimTime now);
  void advance(Stream& stream, SimTime now);
  void announce(Stream& stream);
  void retract(Stream& stream);
  void submit(Stream& stream, SimTime now);
  /// The duration of an operation given to the GPU now.
  [[nodiscard]] inline Duration duration_of(const program::Op& op, double slowdown) const;
  [[nodiscard]] inline double remote_stretch(const program::Op& op) const;
  [[nodiscard]] SimTime next_launch_of(const Meeting& meeting, std::int64_t pass,
                                       SimTime now) const;
  [[nodiscard]] Duration shortest(Duration alone) const;
  [[nodiscard]] bool about_to_arrive(const Stream& stream) const;
  [[nodiscard]] Ahead ahead_of(const Stream& stream, SimTime now) const;
  [[nodiscard]] std::optional<NextMeeting> next_meeting_of(std::uint32_t stream,
                                                           SimTime now) const;
  void begin_iteration(const program::Step& step, const Thread& thread, SimTime now);

  engine::Engine& engine_;
  gpu::Gpu& gpu_;
  const program::Program& program_;
  RunSetup setup_;
  ClientId client_;
  bool takes_turns_;  ///< whether the GPU has time slices, and must know of work in the channel
  RandomStream random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<OpResult> results_;
  std::vector<network::Arrival> arrivals_;  ///< of the present window
  mutable std::optional<MeetingTable> meetings_;  ///< made at the first call: few simulations need
                                                  ///< it
  double pass_factor_ = 1.0;
  double iteration_factor_ = 1.0;
  program::LaunchForm form_;
  double remote_share_ = 0;
  SimTime pass_start_{};
  bool pass_open_ = false;             ///< kOnePass: started and not yet finished
  std::uint64_t passes_finished_ = 0;
  std::uint64_t launch_calls_ = 0;     ///< of all threads
  std::uint64_t outstanding_ = 0;      ///< launched and not yet ended
  std::uint32_t waiting_threads_ = 0;  ///< blocked on device work
  std::uint32_t blocked_streams_ = 0;  ///< blocked on an edge
  std::uint32_t running_threads_ = 0;  ///< not yet at the end of their last pass
};

}  // namespace bubblesim::workload

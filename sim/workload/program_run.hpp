// Runs a program on a GPU: host threads make their calls, streams hand operations to the GPU
// when launch, stream order and edges allow, collectives meet the other ranks.
//
// A run repeats its program: training loops until the engine stops; an inference service starts
// each pass itself. Single-threaded, inside events of one Engine; nothing here allocates in
// steady state.
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

/// What happens at a thread's end of the program.
enum class Repeat : std::uint8_t {
  kLoop,     ///< it goes on with the next pass at once
  kOnePass,  ///< it waits for the next start_pass
};

/// A span in which the hosts of a rank make no call: a fault, until it is found and the job
/// restarted.
struct Outage {
  SimTime from{};
  SimTime until{};  ///< exclusive
};

/// Slows a rank's device operations (not collectives, whose span is the network's).
struct Perturbation {
  double slowdown = 1.0;          ///< factor, > 0, of operations that begin in the span below
  SimTime from = kSimStart;
  SimTime until = SimTime::max();
  std::vector<Outage> outages{};  ///< in order, not overlapping
  double jitter_cv = 0.0;         ///< of a factor drawn anew for each iteration, mean 1, >= 0
  std::uint64_t seed = 0;
  std::string place{};            ///< draws differ between runs of one name in different places
};

class ProgramRun;

/// What a run is connected to. Pointers may be null and outlive the run.
struct RunSetup {
  gpu::ClientSetup client;
  Repeat repeat = Repeat::kLoop;
  std::uint64_t passes = 0;  ///< kLoop: each thread stops at the end of so many; 0: never
  Perturbation perturbation;
  network::Rendezvous* rendezvous = nullptr;  ///< needed if any operation is joined
  LaunchGate* gate = nullptr;
  RunObserver* observer = nullptr;
  /// The runs of the job's ranks, of which this is the one at `place`; null: it has none.
  const std::vector<ProgramRun*>* ranks = nullptr;
  std::uint32_t place = 0;
};

/// Operations that a host launches which is no thread of the program.
struct OutsideLaunch {
  std::uint32_t first = 0;  ///< into the program's ops
  std::uint32_t count = 0;
  std::uint64_t pass = 0;    ///< whose edges they wait for, from 0 on
  std::uint64_t number = 0;  ///< OpRecord::launch
  double slowdown = 1;       ///< of their durations
};

/// The collective at which a stream arrives next.
struct NextMeeting {
  std::uint32_t collective = program::kNoIndex;  ///< into JobProgram::collectives; kNoIndex: any
  SimTime earliest{};
};

/// What a run waits for at an instant.
enum class WaitsFor : std::uint8_t {
  kPolicy,  ///< the gate holds a launch
  kRoom,    ///< an operation that may start has no room on the GPU, or its context no slice
  kDevice,  ///< an operation that runs
  kPeers,   ///< a collective that has begun, for other ranks
  kHost,    ///< nothing but its own host threads
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

  /// Every thread begins a pass at `at`. Precondition: none is running (kOnePass: the last pass
  /// has ended). `factor` scales the durations of this pass's operations.
  void start_pass(SimTime at, double factor = 1.0);

  /// One thread alone begins a pass: of a program whose threads are alternatives to each other.
  /// Precondition: as start_pass; the thread has steps and waits for no other.
  void start_thread(std::uint32_t thread, SimTime at);

  /// Lets a held launch of the thread go on now. Precondition: the gate held it.
  void resume(std::uint32_t thread, SimTime now);

  /// The operations are on their streams from now on.
  void launch(const OutsideLaunch& outside, SimTime now);

  /// The kernels of the next call that goes on, by the gate's verdict or a resume, have this form.
  void reshape(const program::LaunchForm& form) { form_ = form; }

  /// Kernels that start from now on find so much of their memory behind the host link, 0 to 1:
  /// they last at least as long as it takes to move that part of their DRAM traffic over it.
  void set_remote_share(double share) { remote_share_ = share; }

  /// What drives it, for observers that end a simulation (Engine::stop).
  [[nodiscard]] engine::Engine& engine() const { return engine_; }
  [[nodiscard]] ClientId client() const { return client_; }
  [[nodiscard]] const program::Program& program() const { return program_; }
  [[nodiscard]] std::uint64_t passes() const { return passes_finished_; }
  /// When the last pass began.
  [[nodiscard]] SimTime pass_start() const { return pass_start_; }
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  /// Launch calls that its threads have made.
  [[nodiscard]] std::uint64_t launch_calls() const { return launch_calls_; }
  /// What it waits for now; of several, the first in this order: a release by the policy, room on
  /// the GPU, the end of a running operation, peers, its own host.
  [[nodiscard]] Wait waits_for() const;
  /// No operation runs or is due: nothing happens on the device unless something is launched.
  [[nodiscard]] bool stands_still() const;
  /// No thread is inside a pass and nothing that it launched is left.
  [[nodiscard]] bool idle() const { return running_threads_ == 0 && outstanding_ == 0; }

  /// Appends to `next` the collective at which each stream of the run arrives next, and the
  /// earliest time: the work of device and host before it takes at least its own time. It holds
  /// until a collective that the run waits in is complete. Streams that arrive nowhere before then
  /// are left out. Nothing is sure about the streams of a run that has an entry for kNoIndex: it
  /// may arrive anywhere, from `now` on. `now` is the present.
  void next_meetings(SimTime now, std::vector<NextMeeting>& next) const;

  /// Hands over the arrivals of a window, which have not been reported yet. Appends to `arrivals`.
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
  /// What a stream has ahead.
  struct Ahead {
    SimTime from;          ///< earliest start of the next operation
    Duration done{};       ///< work over all passes, with what runs
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
  /// The duration of an operation that is handed to the GPU now.
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
  bool takes_turns_;  ///< the GPU has time slices, and is told what is in the channel
  RandomStream random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<OpResult> results_;
  std::vector<network::Arrival> arrivals_;  ///< of the window that runs
  mutable std::optional<MeetingTable> meetings_;  ///< made when first asked: few simulations do
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

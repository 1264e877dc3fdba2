// The rank that planned the sweep: hands out runs, takes records, notices which workers are gone.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/sweep/cluster/notes.hpp"
#include "sim/sweep/cluster/run_queue.hpp"
#include "sim/sweep/cluster/transport.hpp"

namespace bubblesim::sweep {

/// Workers ask at least this often.
inline constexpr Duration kBeat = std::chrono::milliseconds{500};
/// Nothing heard for so long, the other end counts as lost. Messages are looked at by a thread that
/// does nothing else, so a long run does not silence a rank.
inline constexpr Duration kSilence = std::chrono::seconds{60};

struct LeaderOptions {
  std::string sweep;
  std::string version;        ///< of the program; a worker with another one is given nothing
  std::string host;
  std::size_t threads = 1;    ///< of this rank, for runs
  Duration silence = kSilence;
};

/// `started` and `done` are called from any thread, the others from the one that leads.
struct LeaderPorts {
  std::function<void(const store::PlannedRun&)> started;
  /// Once a run. `took`: by the clock on the wall; nothing for a run that was given up.
  std::function<void(store::RunRecord&&, std::optional<Duration> took)> done;
  std::function<bool()> stopped;                  ///< true: give nothing out any more
  std::function<void(const std::string&)> warn;   ///< a rank was lost, or cannot take part
  std::function<void()> tick;                     ///< a few times a second at least
};

struct LeaderSummary {
  std::size_t workers = 0;      ///< that took part
  std::size_t lost = 0;         ///< of them
  std::size_t refused = 0;      ///< that could not take part: another version, other files
  std::size_t threads = 0;      ///< of all ranks that took part
  std::size_t done_elsewhere = 0;
  std::size_t come_twice = 0;   ///< records of runs that were done already; dropped
  std::size_t damaged = 0;      ///< messages
  Parting parting = Parting::kTogether;
};

class Leader {
 public:
  /// Refers to all of them. `runs`: indices ascend.
  Leader(Transport& transport, const std::vector<store::PlannedRun>& runs, LeaderOptions options,
         LeaderPorts ports);

  /// The next run for a thread of this rank; nothing: there is none any more.
  [[nodiscard]] std::optional<store::PlannedRun> next_here();
  void done_here(store::RunRecord&& record, Duration took);

  /// Returns when all runs are done, or after a stop no rank has one any more, and every worker
  /// that lives has been told to end. The parting from the transport is the caller's.
  LeaderSummary lead();

 private:
  struct Worker {
    enum class State : std::uint8_t { kUnknown, kWorking, kRefused, kParted, kLost };
    State state = State::kUnknown;
    Duration heard{};       // when
    std::string host;
    std::uint64_t number = 0;  // of its last ask
    std::optional<Ask> parked;  // of one that has nothing to do: answered when there is something
  };

  void take(const Message& message);
  void take(int from, const Ask& ask);
  [[nodiscard]] bool answer(int rank, const Ask& ask);
  void answer_parked();
  void take(int from, Delivery&& delivery);
  void take(int from, const ClusterRefusal& refusal);
  void tell_started(std::uint64_t index);
  [[nodiscard]] bool accept(int rank, const Ask& ask);
  void refuse(int rank, const std::string& reason);
  [[nodiscard]] LeaderOrder order_for(int rank) const;
  void look_for_lost();
  void lose(int rank, const std::string& how);
  void give_up(const std::vector<const store::PlannedRun*>& runs, const std::string& why);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool all_parted() const;
  [[nodiscard]] std::string name_of(int rank) const;

  Transport& transport_;
  LeaderOptions options_;
  LeaderPorts ports_;
  RunQueue queue_;
  std::map<int, Worker> workers_;
  std::set<std::uint64_t> told_;  // started elsewhere, and not ended
  LeaderSummary summary_;
  bool stopping_ = false;
  Duration looked_{};
};

/// Nanoseconds of a clock that never goes back; only differences mean something.
[[nodiscard]] Duration steady_now();

}  // namespace bubblesim::sweep

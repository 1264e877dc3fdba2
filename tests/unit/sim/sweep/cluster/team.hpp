// A leader and workers on a switchboard, whose runs are made up: the record of run i says i.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sim/run/parallel.hpp"
#include "sim/sweep/cluster/leader.hpp"
#include "sim/sweep/cluster/worker.hpp"
#include "tests/unit/sim/sweep/cluster/switchboard.hpp"

namespace bubblesim::sweep {

/// Indices 0, 2, 4 ...: a shard's.
inline std::vector<store::PlannedRun> made_up_runs(std::size_t count) {
  std::vector<store::PlannedRun> runs(count);
  for (std::size_t i = 0; i < count; ++i) {
    runs[i].index = 2 * i;
    runs[i].key = "key " + std::to_string(runs[i].index);
    runs[i].config = R"({"name": "made up"})";
  }
  return runs;
}

struct TeamOutcome {
  LeaderSummary summary;
  std::vector<store::RunRecord> records;       ///< in the order in which they came
  std::vector<std::string> warnings;
  std::map<int, ClusterWorkerEnd> ends;        ///< by rank

  [[nodiscard]] std::map<std::uint64_t, int> times_done() const {
    std::map<std::uint64_t, int> times;
    for (const store::RunRecord& record : records) ++times[record.run.index];
    return times;
  }
  [[nodiscard]] std::size_t failed() const {
    std::size_t count = 0;
    for (const store::RunRecord& record : records)
      count += record.status == store::RunStatus::kFailed ? 1 : 0;
    return count;
  }
};

class Team {
 public:
  /// Called by a thread of `rank` before it does a run. False: the rank died of it.
  using Event = std::function<bool(int rank, const store::PlannedRun& run)>;

  Team(int ranks, std::size_t threads, Mishaps mishaps = {}, Duration delay = {})
      : board(ranks, std::move(mishaps), delay), threads_(threads) {}

  TeamOutcome run(const std::vector<store::PlannedRun>& runs) {
    std::vector<std::thread> workers;
    for (int rank = 1; rank < board.ranks(); ++rank) {
      workers.emplace_back([this, rank] { work(rank); });
    }
    lead(runs);
    for (std::thread& worker : workers) worker.join();
    return std::move(outcome_);
  }

  Switchboard board;
  Event event = [](int, const store::PlannedRun&) { return true; };
  std::function<bool()> stopped = [] { return false; };
  std::function<std::string(int rank, const store::PlannedRun&)> obstacle =
      [](int, const store::PlannedRun&) { return std::string(); };
  std::map<int, std::string> versions;  ///< of workers; the leader's is "1"
  Duration silence = kSilence;
  Duration workers_silence = std::chrono::minutes{5};

 private:
  void execute(int rank, const ExecuteOptions& options, const SweepPorts& ports) {
    run::for_each_parallel(options.threads, options.threads, [&](std::size_t) {
      while (const auto next = ports.next()) {
        if (!event(rank, *next)) board.kill(rank);
        store::RunRecord record;
        record.run = *next;
        record.sweep = options.sweep;
        record.host = "host" + std::to_string(rank);
        record.version = options.version;
        ports.done(std::move(record));
      }
    });
  }

  void work(int rank) {
    Line line(board, rank);
    WorkerOptions options;
    options.execute.threads = threads_;
    options.execute.version = versions.contains(rank) ? versions[rank] : "1";
    options.host = "host" + std::to_string(rank);
    options.silence = workers_silence;
    options.ask_again = std::chrono::milliseconds{50};
    WorkerPorts ports;
    ports.execute = [this, rank](const ExecuteOptions& execute_options, const SweepPorts& runs) {
      execute(rank, execute_options, runs);
    };
    ports.obstacle = [this, rank](const store::PlannedRun& run) { return obstacle(rank, run); };
    ports.stopped = [] { return false; };
    const ClusterWorkerEnd end = work_for_leader(line, options, ports);
    const std::scoped_lock lock(mutex_);
    outcome_.ends[rank] = end;
  }

  void lead(const std::vector<store::PlannedRun>& runs) {
    Line line(board, kLeaderRank);
    LeaderPorts ports;
    ports.started = [](const store::PlannedRun&) {};
    ports.done = [this](store::RunRecord&& record, std::optional<Duration>) {
      const std::scoped_lock lock(mutex_);
      outcome_.records.push_back(std::move(record));
    };
    ports.stopped = [this] { return stopped(); };
    ports.warn = [this](const std::string& text) {
      const std::scoped_lock lock(mutex_);
      outcome_.warnings.push_back(text);
    };
    ports.tick = [] {};
    Leader leader(line, runs, {"made up", "1", "host0", threads_, silence}, ports);
    ExecuteOptions options;
    options.threads = threads_;
    options.sweep = "made up";
    SweepPorts here;
    here.next = [&leader] { return leader.next_here(); };
    here.done = [&leader](store::RunRecord&& record) {
      leader.done_here(std::move(record), Duration{});
    };
    std::thread local([&] { execute(kLeaderRank, options, here); });
    const LeaderSummary summary = leader.lead();
    local.join();
    outcome_.summary = summary;
  }

  std::size_t threads_;
  std::mutex mutex_;
  TeamOutcome outcome_;
};

}  // namespace bubblesim::sweep

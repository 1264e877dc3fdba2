// Executes the remaining runs of a plan on threads of this process. The caller takes the records.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/baselines.hpp"
#include "sim/run/run_inputs.hpp"
#include "sim/store/results_store.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

/// Bytes of training jobs that are kept though no run uses them, and of fillers' programs.
inline constexpr std::size_t kInputBytesKept = std::size_t{1} << 29;

/// Approximate bytes of a program in memory.
[[nodiscard]] std::size_t bytes_of(const program::Program& program);

/// Called from several threads; all must be thread-safe.
struct SweepPorts {
  std::function<void(const store::PlannedRun&)> started = nullptr;  ///< called before each run
  std::function<void(store::RunRecord&&)> done;  ///< called once for each run, finished or failed
  std::function<bool()> stopped;                 ///< true: take no further run
};

struct ExecuteOptions {
  std::size_t threads = 1;
  std::string sweep;
  std::string device_folder;
  std::string version;
  /// If another thread sets it to true, runs fail soon after. Null: runs are not stopped.
  const std::atomic<bool>* stop = nullptr;
};

/// What the runs of a process share: training jobs and fillers' programs, each loaded once however
/// many threads ask, and baselines, each simulated once. Thread-safe.
struct SharedWork {
  explicit SharedWork(std::string device_folder, std::size_t bytes_kept = kInputBytesKept);

  /// Loads as load_run does. `json`: the config, paths absolute; its parts about programs are the
  /// key.
  [[nodiscard]] CheckedResult<run::LoadedRun> load(const run::RunConfig& config, const Json& json);

  std::string device_folder;
  run::SharedResults<run::LoadedTraining, Errors> trainings;
  run::SharedResults<run::LoadedFiller, Errors> fillers;
  run::BaselineCache baselines{};
};

/// Executes the runs in their order. Returns when all are done, or `stopped` and the runs in flight
/// are done. A failed run gives a record with the reason.
void execute_runs(const std::vector<store::PlannedRun>& runs, const policy::Registry& registry,
                  const ExecuteOptions& options, const SweepPorts& ports, SharedWork& shared);

/// This machine's name; empty: it has none.
[[nodiscard]] std::string host_name();

/// The record of a failed run, with the reason.
[[nodiscard]] store::RunRecord failed_record(const store::PlannedRun& run,
                                             const ExecuteOptions& options, std::string reason);

/// Executes one run. A fault of its inputs, an illegal decision and an exception give failed
/// records.
[[nodiscard]] store::RunRecord execute_run(const store::PlannedRun& run,
                                           const policy::Registry& registry,
                                           const ExecuteOptions& options, SharedWork& shared);

// Puts records into a store, in batches and from a thread of its own, so that runs never wait for
// a disk. A record is on disk within about half a second of its run's end.

class RecordWriter {
 public:
  static constexpr Duration kLongestWait = std::chrono::milliseconds{500};
  static constexpr std::size_t kLargestBatch = 1000;

  /// The store outlives the writer and has no other user until finish() or the destructor has
  /// returned. If its file is gone, old and new records go into a store at the path `kept_in`; if
  /// that is empty, they are lost.
  explicit RecordWriter(store::ResultsStore& store, std::string kept_in = {});
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Thread-safe; never waits for the store.
  void add(store::RunRecord&& record);
  /// Whether the store has refused a batch. Nothing is stored after that.
  [[nodiscard]] bool failed() const { return failed_.load(); }
  /// Waits until everything is stored. Fault: the store refused a batch; the text says where the
  /// records are kept, or how many were lost.
  [[nodiscard]] Result<void> finish();

 private:
  void work();
  void store(const std::vector<store::RunRecord>& batch);
  /// Copies the store, whose file is gone.
  [[nodiscard]] Result<std::unique_ptr<store::ResultsStore>> copied() const;

  store::ResultsStore& store_;
  const std::string kept_in_;
  std::unique_ptr<store::ResultsStore> kept_;  // null: `store_` takes the records
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<store::RunRecord> waiting_;
  bool ending_ = false;
  std::atomic<bool> failed_{false};
  std::optional<Error> fault_;  // used by the thread until it is joined, like the next member
  std::size_t lost_ = 0;
  std::thread thread_;
};

}  // namespace bubblesim::sweep

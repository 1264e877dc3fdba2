// Puts records into a store, in batches and from a thread of its own, so that runs never wait for
// a disk. A record is on disk within about half a second of its run's end.
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
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::sweep {

class RecordWriter {
 public:
  static constexpr Duration kLongestWait = std::chrono::milliseconds{500};
  static constexpr std::size_t kLargestBatch = 1000;

  /// The store outlives the writer and has no other user until finish() or the destructor has
  /// returned. If its file is gone, what was in it and what is added goes into a store at the path
  /// `kept_in`; empty: it is lost.
  explicit RecordWriter(store::ResultsStore& store, std::string kept_in = {});
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Thread-safe; never waits for the store.
  void add(store::RunRecord&& record);
  /// Whether the store has refused a batch. Nothing is stored after that.
  [[nodiscard]] bool failed() const { return failed_.load(); }
  /// Waits until everything is stored. The fault of the store, if it has refused a batch, with
  /// where all is kept, or how many records were lost for it.
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
  std::optional<Error> fault_;  // the thread's until it is joined, as is the next
  std::size_t lost_ = 0;
  std::thread thread_;
};

}  // namespace bubblesim::sweep

#include "sim/sweep/record_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace bubblesim::sweep {

RecordWriter::RecordWriter(store::ResultsStore& store)
    : store_(store), thread_([this] { work(); }) {}

RecordWriter::~RecordWriter() { (void)finish(); }

void RecordWriter::add(store::RunRecord&& record) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(record));
  if (waiting_.size() == 1 || waiting_.size() >= kLargestBatch) wake_.notify_one();
}

Result<void> RecordWriter::finish() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (!fault_) return {};
  Error fault = *fault_;
  fault.message += "; " + std::to_string(lost_) + " finished runs could not be stored, and will be "
                   "run again";
  return tl::unexpected<Error>(std::move(fault));
}

// From the first record on it waits for more, so that a batch costs one transaction; not so long
// that much is lost with the process.
void RecordWriter::work() {
  for (;;) {
    std::vector<store::RunRecord> batch;
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      wake_.wait_for(lock, kLongestWait,
                     [this] { return ending_ || waiting_.size() >= kLargestBatch; });
      last = ending_;
      batch.swap(waiting_);
    }
    if (!batch.empty()) store(batch);
    if (last) return;
  }
}

void RecordWriter::store(const std::vector<store::RunRecord>& batch) {
  if (fault_) {
    lost_ += batch.size();
    return;
  }
  auto stored = store_.add(batch);
  if (stored) return;
  fault_ = stored.error();
  lost_ = batch.size();
  failed_ = true;
}

}  // namespace bubblesim::sweep

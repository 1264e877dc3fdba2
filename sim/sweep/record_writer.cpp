#include "sim/sweep/record_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace bubblesim::sweep {

RecordWriter::RecordWriter(store::ResultsStore& store, std::string kept_in)
    : store_(store), kept_in_(std::move(kept_in)), thread_([this] { work(); }) {}

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
  if (kept_) {
    fault.message += "; what was in it and what is finished is kept in " + kept_in_ +
                     ", which `bubblesim results merge` takes";
  }
  if (lost_ > 0) {
    fault.message += "; " + std::to_string(lost_) + " finished runs could not be stored, and will "
                     "be run again";
  }
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
  const auto add = [&](store::ResultsStore& store) {
    auto stored = store.add(batch);
    if (!stored && !fault_) fault_ = stored.error();
    return stored.has_value();
  };
  if (!fault_ && add(store_)) return;
  failed_ = true;
  if (!kept_ && store_.is_gone() && !kept_in_.empty()) {
    if (auto kept = copied()) kept_ = *std::move(kept);
  }
  if (!kept_ || !add(*kept_)) lost_ += batch.size();
}

Result<std::unique_ptr<store::ResultsStore>> RecordWriter::copied() const {
  BUBBLESIM_ASSIGN_OR_RETURN(auto copy, store::open_store(kept_in_, store::StoreAccess::kWrite));
  Result<void> stored;
  BUBBLESIM_RETURN_IF_ERROR(store_.each_record([&](const store::RunRecord& record) {
    if (auto added = copy->add({&record, 1}); !added) stored = tl::unexpected<Error>(added.error());
  }));
  BUBBLESIM_RETURN_IF_ERROR(stored);
  return copy;
}

}  // namespace bubblesim::sweep

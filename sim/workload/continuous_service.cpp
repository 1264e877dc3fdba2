#include "sim/workload/continuous_service.hpp"

#include <algorithm>

namespace bubblesim::workload {
namespace {

// Index of the first bucket that is not below `value`; the last if all are.
template <class T>
std::uint32_t bucket_of(const std::vector<T>& buckets, T value) {
  const auto at = std::lower_bound(buckets.begin(), buckets.end(), value);
  const auto last = buckets.end() - 1;
  return static_cast<std::uint32_t>(std::min(at, last) - buckets.begin());
}

}  // namespace

std::uint32_t IterationTable::prompt_thread(std::uint64_t tokens) const {
  return bucket_of(prompt_tokens, tokens);
}

std::uint32_t IterationTable::decode_thread(std::uint32_t count, std::uint64_t cached) const {
  const std::uint64_t bucket = cached / count / context_step;
  const auto context =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(bucket, contexts - 1));
  return static_cast<std::uint32_t>(prompt_tokens.size()) +
         bucket_of(sequences, count) * contexts + context;
}

ContinuousService::ContinuousService(ProgramRun& run, const IterationTable& table,
                                     ServiceListener& listener)
    : run_(run), table_(table), listener_(listener) {}

void ContinuousService::start_offline(SimTime now) {
  offline_ = true;
  next_iteration(now);
}

void ContinuousService::enqueue(std::uint64_t number, SimTime now) {
  waiting_.push_back({number, now, now, now, 0});
}

void ContinuousService::serve_waiting(SimTime now) {
  if (!busy_) next_iteration(now);
}

// Reserves prompt and output of whoever joins; all are alike, so their number is what is counted.
void ContinuousService::admit(SimTime now) {
  std::uint64_t tokens = table_.length.prompt;
  const auto fits = [&] {
    const std::uint64_t count = running_.size() + joining_.size() + 1;
    return count <= table_.sequences.back() && count * need() <= table_.cache_tokens &&
           tokens <= table_.prompt_tokens.back();
  };
  for (; fits() && (offline_ || !waiting_.empty()); tokens += table_.length.prompt) {
    if (offline_) {
      joining_.push_back({0, now, now, now, 0});
      continue;
    }
    joining_.push_back(waiting_.front());
    joining_.back().start = now;
    waiting_.pop_front();
  }
}

void ContinuousService::next_iteration(SimTime now) {
  admit(now);
  busy_ = !joining_.empty() || !running_.empty();
  if (!joining_.empty()) {
    run_.start_thread(table_.prompt_thread(joining_.size() * table_.length.prompt), now);
  } else if (!running_.empty()) {
    std::uint64_t cached = 0;
    for (const Request& request : running_) {
      cached += table_.length.prompt + request.generated - 1;
    }
    run_.start_thread(
        table_.decode_thread(static_cast<std::uint32_t>(running_.size()), cached), now);
  }
}

void ContinuousService::finish_prompts(SimTime now) {
  for (Request& request : joining_) {
    request.first_token = now;
    request.generated = 1;
    running_.push_back(request);
  }
  joining_.clear();
}

void ContinuousService::pass_finished(SimTime now) {
  if (joining_.empty()) {
    for (Request& request : running_) ++request.generated;
  } else {
    finish_prompts(now);
  }
  const auto ended = std::stable_partition(
      running_.begin(), running_.end(),
      [&](const Request& request) { return request.generated < table_.length.output; });
  const auto served = static_cast<std::uint64_t>(running_.end() - ended);
  for (auto request = ended; request != running_.end(); ++request) {
    listener_.on_served(
        {request->number, request->arrival, request->start, now, request->first_token});
  }
  running_.erase(ended, running_.end());
  listener_.on_batch(served, now);
  next_iteration(now);
}

std::optional<std::uint64_t> ContinuousService::serving(std::size_t) const {
  if (offline_ || !busy_) return std::nullopt;
  return joining_.empty() ? running_.front().number : joining_.front().number;
}

std::vector<SimTime> ContinuousService::unfinished() const {
  std::vector<SimTime> arrivals;
  if (offline_) return arrivals;
  for (const Request& request : running_) arrivals.push_back(request.arrival);
  for (const Request& request : joining_) arrivals.push_back(request.arrival);
  for (const Request& request : waiting_) arrivals.push_back(request.arrival);
  return arrivals;
}

}  // namespace bubblesim::workload

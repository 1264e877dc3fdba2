#include "sim/sweep/cluster/run_queue.hpp"

#include <algorithm>

namespace bubblesim::sweep {

RunQueue::RunQueue(const std::vector<store::PlannedRun>& runs)
    : runs_(runs), states_(runs.size()) {}

std::vector<const store::PlannedRun*> RunQueue::give(int rank, std::size_t idle,
                                                     std::size_t spare) {
  const std::scoped_lock lock(mutex_);
  std::vector<const store::PlannedRun*> given;
  if (stopped_) return given;
  std::size_t all_threads = 0;
  for (const auto& [owner, threads] : threads_) all_threads += threads;
  while (given.size() < idle + spare) {
    if (given.size() >= idle && waiting() <= all_threads) break;
    const std::optional<Place> place = take(true);
    if (!place) break;
    held_[rank].push_back(*place);
    given.push_back(&runs_[*place]);
  }
  return given;
}

const store::PlannedRun* RunQueue::wait_for_run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_ || done_ == runs_.size()) return nullptr;
    if (const std::optional<Place> place = take(!has_workers())) {
      held_[kLeaderRank].push_back(*place);
      return &runs_[*place];
    }
    changed_.wait(lock);
  }
}

void RunQueue::set_threads(int rank, std::size_t threads) {
  const std::scoped_lock lock(mutex_);
  threads_[rank] = threads;
  changed_.notify_all();
}

void RunQueue::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

const store::PlannedRun* RunQueue::finish(std::uint64_t index) {
  const std::scoped_lock lock(mutex_);
  const std::optional<Place> place = place_of(index);
  if (!place || states_[*place].done) return nullptr;
  mark_done(*place);
  return &runs_[*place];
}

std::vector<const store::PlannedRun*> RunQueue::has_only(int rank,
                                                         const std::set<std::uint64_t>& held) {
  const std::scoped_lock lock(mutex_);
  std::vector<const store::PlannedRun*> given_up;
  std::vector<Place> kept;
  const std::vector<Place> had = std::move(held_[rank]);
  for (const Place place : had) {
    if (held.contains(runs_[place].index)) {
      kept.push_back(place);
    } else if (!give_back(place)) {
      given_up.push_back(&runs_[place]);
    }
  }
  held_[rank] = std::move(kept);
  return given_up;
}

std::vector<const store::PlannedRun*> RunQueue::lose(int rank) {
  const std::scoped_lock lock(mutex_);
  std::vector<const store::PlannedRun*> given_up;
  const std::vector<Place> had = std::move(held_[rank]);
  held_.erase(rank);
  for (std::size_t i = 0; i < had.size(); ++i) {
    if (i < threads_[rank]) ++states_[had[i]].losses;
    if (!give_back(had[i])) given_up.push_back(&runs_[had[i]]);
  }
  threads_[rank] = 0;
  changed_.notify_all();
  return given_up;
}

const store::PlannedRun* RunQueue::planned(std::uint64_t index) const {
  const std::optional<Place> place = place_of(index);  // what never changes needs no lock
  return place ? &runs_[*place] : nullptr;
}

bool RunQueue::all_done() const {
  const std::scoped_lock lock(mutex_);
  return done_ == runs_.size();
}

std::size_t RunQueue::held() const {
  const std::scoped_lock lock(mutex_);
  std::size_t all = 0;
  for (const auto& [rank, places] : held_) all += places.size();
  return all;
}

std::size_t RunQueue::held_by(int rank) const {
  const std::scoped_lock lock(mutex_);
  const auto found = held_.find(rank);
  return found == held_.end() ? 0 : found->second.size();
}

std::optional<RunQueue::Place> RunQueue::take(bool suspects) {
  std::deque<Place>* from = !returned_.empty() ? &returned_ : nullptr;
  if (from == nullptr && next_ < runs_.size()) return next_++;
  if (from == nullptr && suspects && !suspects_.empty()) from = &suspects_;
  if (from == nullptr) return std::nullopt;
  const Place place = from->front();
  from->pop_front();
  return place;
}

std::size_t RunQueue::waiting() const {
  return runs_.size() - next_ + returned_.size() + suspects_.size();
}

bool RunQueue::has_workers() const {
  return std::any_of(threads_.begin(), threads_.end(), [](const auto& entry) {
    return entry.first != kLeaderRank && entry.second > 0;
  });
}

// False: it has come back too often.
bool RunQueue::give_back(Place place) {
  State& state = states_[place];
  ++state.returns;
  if (state.losses >= kMostLosses || state.returns >= kMostReturns) {
    mark_done(place);
    return false;
  }
  (state.losses > 0 ? suspects_ : returned_).push_back(place);
  changed_.notify_all();
  return true;
}

std::optional<RunQueue::Place> RunQueue::place_of(std::uint64_t index) const {
  const auto found = std::lower_bound(
      runs_.begin(), runs_.end(), index,
      [](const store::PlannedRun& run, std::uint64_t at) { return run.index < at; });
  if (found == runs_.end() || found->index != index) return std::nullopt;
  return static_cast<Place>(found - runs_.begin());
}

// A run may be ended by one rank while it waits, or while another has it.
void RunQueue::mark_done(Place place) {
  states_[place].done = true;
  ++done_;
  for (auto& [rank, places] : held_) std::erase(places, place);
  std::erase(returned_, place);
  std::erase(suspects_, place);
  if (done_ == runs_.size()) changed_.notify_all();
}

}  // namespace bubblesim::sweep

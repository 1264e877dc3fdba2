#include "sim/workload/service.hpp"

namespace bubblesim::workload {

Service::Service(engine::Engine& engine, ProgramRun& run, const program::Batching& batching,
                 ServiceListener& listener, PassTaker* taker)
    : engine_(engine), run_(run), batching_(batching), listener_(listener), taker_(taker),
      timer_(engine.add_entity(*this, engine::Phase::kHost)) {}

void Service::start_offline(SimTime now) {
  offline_ = true;
  start_batch(batching_.max_batch, now);
}

void Service::enqueue(std::uint64_t number, SimTime now) { queue_.push_back({number, now}); }

void Service::on_event(SimTime now) { serve_waiting(now); }

void Service::serve_waiting(SimTime now) {
  if (busy_ || queue_.empty()) return;
  const SimTime due =
      batching_.due(queue_.size(), [this](std::size_t i) { return queue_[i].arrival; });
  if (now < due) {
    engine_.schedule(timer_, due);
    return;
  }
  engine_.cancel(timer_);
  start_batch(batching_.batch_size(queue_.size()), now);
}

void Service::start_batch(std::size_t size, SimTime now) {
  batch_.clear();
  for (std::size_t i = 0; i < size; ++i) {
    if (offline_) {
      batch_.push_back({0, now});
    } else {
      batch_.push_back(queue_.front());
      queue_.pop_front();
    }
  }
  busy_ = true;
  batch_start_ = now;
  const double factor = batching_.pass_factor(size);
  if (taker_ != nullptr && taker_->take_pass(now, factor)) return;
  run_.start_pass(now, factor);
}

void Service::pass_finished(SimTime now) {
  busy_ = false;
  for (const Waiting& request : batch_) {
    listener_.on_served({request.number, request.arrival, batch_start_, now, {}});
  }
  const std::uint64_t served = batch_.size();
  batch_.clear();
  listener_.on_batch(served, now);
  if (offline_) {
    start_batch(batching_.max_batch, now);
  } else {
    serve_waiting(now);
  }
}

std::optional<std::uint64_t> Service::serving(std::size_t) const {
  if (offline_ || batch_.empty()) return std::nullopt;
  return batch_.front().number;
}

std::vector<serving::UnfinishedRequest> Service::unfinished() const {
  std::vector<serving::UnfinishedRequest> requests;
  if (offline_) return requests;
  for (const Waiting& request : batch_) requests.push_back({request.arrival});
  for (const Waiting& request : queue_) requests.push_back({request.arrival});
  return requests;
}

}  // namespace bubblesim::workload

#include "sim/workload/engine_service.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::workload {
namespace {

ServedRequest served(const serving::FinishedRequest& request) {
  ServedRequest out;
  out.number = request.number;
  out.arrival = request.arrival;
  out.start = request.admitted;
  out.end = request.last_token;
  out.first_token = request.first_token;
  out.output_tokens = request.output_tokens;
  return out;
}

serving::Request request_of(std::uint64_t number, const RecordedLength& length, SimTime arrival) {
  serving::Request request;
  request.number = number;
  request.arrival = arrival;
  request.prompt_tokens = length.prompt_tokens;
  request.output_tokens = length.output_tokens;
  request.prefix.conversation = length.conversation;
  request.prefix.hashes = length.hashes;
  request.prefix.tokens_per_hash = length.hashes.empty() ? 0 : kHashTokens;
  return request;
}

}  // namespace

EngineService::EngineService(ProgramRun& run, StepProgram& steps,
                             const serving::SchedulerSpec& spec, LengthSequence lengths,
                             ServiceListener& listener)
    : spec_(spec), idle_(serving::decode_step(spec.decode_query_len())),
      listener_(listener), lengths_(std::move(lengths)) {
  add_member();
  add_gpu(run, steps);
}

void EngineService::add_member() {
  members_.push_back(std::make_unique<Member>(spec_));
  schedulers_.push_back(&members_.back()->scheduler);
}

void EngineService::start_offline(SimTime now) {
  offline_ = true;
  refill(now);
}

void EngineService::serve_waiting(SimTime now) { refill(now); }

EngineService::Member& EngineService::least_loaded() {
  return **std::ranges::min_element(members_, {},
                                    [](const auto& member) { return member->scheduler.load(); });
}

void EngineService::enqueue(std::uint64_t number, SimTime now) {
  serving::Request request = request_of(number, lengths_.length_of(number), now);
  if (sink_ != nullptr) {
    if (request.output_tokens > 1) prompts_.emplace(number, request);
    request.output_tokens = 1;
  }
  least_loaded().scheduler.arrive(request);
}

void EngineService::take_over(const serving::Request& request, SimTime now) {
  least_loaded().scheduler.arrive(request);
  refill(now);
}

void EngineService::keep_waiting(Member& member, SimTime now) {
  serving::Scheduler& scheduler = member.scheduler;
  while (scheduler.waiting() < scheduler.spec().max_num_seqs) {
    const std::uint64_t number = next_offline_++;
    scheduler.arrive(request_of(number, lengths_.length_of(number), now));
  }
}

void EngineService::refill(SimTime now) {
  if (at_work_ > 0) return;
  bool starts = false;
  for (const auto& member : members_) {
    if (offline_) keep_waiting(*member, now);
    member->start = member->queue.refill(now);
    starts = starts || member->start;
  }
  listener_.on_scheduled(now);
  if (starts) start_step(now);
}

void EngineService::start_step(SimTime now) {
  shapes_.clear();
  for (const auto& member : members_) {
    shapes_.push_back(member->gpus.front().steps->shape_of(step_of(*member)));
    at_work_ += member->gpus.size();
  }
  serving::launch_alike(shapes_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = *members_[i];
    const bool queued = !member.start || member.start->queued;
    for (const Gpu& gpu : member.gpus) {
      gpu.run->start_thread(gpu.steps->set(step_of(member), shapes_[i], queued), now);
    }
  }
}

// All members' steps have ended before listeners are told, who may bring the next request.
void EngineService::pass_finished(SimTime now) {
  if (--at_work_ > 0) return;
  std::uint64_t count = 0;
  outcomes_.clear();
  for (const auto& member : members_) {
    if (member->queue.running() == nullptr) continue;
    outcomes_.push_back(&member->queue.finish(now));
    count += outcomes_.back()->finished.size();
  }
  for (const serving::StepOutcome* outcome : outcomes_) tell(*outcome, now);
  listener_.on_batch(count, now);
  refill(now);
}

void EngineService::tell(const serving::StepOutcome& outcome, SimTime now) {
  if (!outcome.gaps.empty()) listener_.on_token_gaps(outcome.gaps, now);
  for (const serving::FinishedRequest& request : outcome.finished) finished(request, now);
}

void EngineService::finished(const serving::FinishedRequest& request, SimTime now) {
  const auto prompt = prompts_.find(request.number);
  if (prompt == prompts_.end()) return listener_.on_served(served(request));
  serving::Request handed = std::move(prompt->second);
  prompts_.erase(prompt);
  handed.handed = serving::Handover{request.first_token};
  sink_->hand_over(std::move(handed), now);
}

std::optional<std::uint64_t> EngineService::serving(std::size_t member) const {
  const Member& asked = *members_[member];
  if (offline_ || asked.queue.running() == nullptr) return std::nullopt;
  return asked.scheduler.oldest_running();
}

std::size_t EngineService::queued() const {
  std::size_t waiting = 0;
  for (const serving::Scheduler* scheduler : schedulers_) waiting += scheduler->waiting();
  return waiting;
}

std::vector<serving::UnfinishedRequest> EngineService::unfinished() const {
  std::vector<serving::UnfinishedRequest> requests;
  if (offline_) return requests;
  const auto append = [&requests](const std::vector<serving::UnfinishedRequest>& more) {
    requests.insert(requests.end(), more.begin(), more.end());
  };
  for (const serving::Scheduler* scheduler : schedulers_) append(scheduler->unfinished());
  if (sink_ != nullptr) append(sink_->underway());
  std::ranges::stable_sort(requests, {}, &serving::UnfinishedRequest::arrival);
  return requests;
}

}  // namespace bubblesim::workload

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

}  // namespace

EngineService::EngineService(ProgramRun& run, StepProgram& steps,
                             const serving::SchedulerSpec& spec, LengthSequence lengths,
                             ServiceListener& listener)
    : gpus_{{&run, &steps}}, listener_(listener), lengths_(std::move(lengths)),
      scheduler_(spec), queue_(scheduler_) {}

void EngineService::start_offline(SimTime now) {
  offline_ = true;
  refill(now);
}

void EngineService::arrive_together(std::uint64_t first, std::uint64_t count, SimTime now) {
  for (std::uint64_t i = 0; i < count; ++i) arrive(first + i, now);
  if (queue_.running() == nullptr) refill(now);
}

void EngineService::arrive(std::uint64_t number, SimTime now) {
  const RecordedLength& length = lengths_.of(number);
  serving::Request request;
  request.number = number;
  request.arrival = now;
  request.prompt_tokens = length.prompt_tokens;
  request.output_tokens = length.output_tokens;
  request.prefix.conversation = length.conversation;
  request.prefix.hashes = length.hashes;
  request.prefix.tokens_per_hash = length.hashes.empty() ? 0 : kHashTokens;
  if (sink_ != nullptr) {
    if (request.output_tokens > 1) prompts_.emplace(number, request);
    request.output_tokens = 1;
  }
  scheduler_.arrive(request);
}

void EngineService::take_over(const serving::Request& request, SimTime now) {
  scheduler_.arrive(request);
  if (queue_.running() == nullptr) refill(now);
}

void EngineService::refill(SimTime now) {
  while (offline_ && scheduler_.waiting() < scheduler_.spec().max_num_seqs) {
    arrive(next_offline_++, now);
  }
  const auto start = queue_.refill(now);
  if (!start) return;
  at_work_ = gpus_.size();
  for (const Gpu& gpu : gpus_) {
    gpu.run->start_thread(gpu.steps->set(*start->step, start->queued), now);
  }
}

void EngineService::pass_finished(SimTime now) {
  if (--at_work_ > 0) return;
  const serving::StepOutcome& outcome = queue_.finish(now);
  if (!outcome.gaps.empty()) listener_.on_token_gaps(outcome.gaps, now);
  for (const serving::FinishedRequest& request : outcome.finished) finished(request, now);
  const std::uint64_t count = outcome.finished.size();
  listener_.on_batch(count, now);
  // The listener may have given it a request, which started the next step.
  if (queue_.running() == nullptr) refill(now);
}

void EngineService::finished(const serving::FinishedRequest& request, SimTime now) {
  const auto prompt = prompts_.find(request.number);
  if (prompt == prompts_.end()) return listener_.on_served(served(request));
  serving::Request handed = std::move(prompt->second);
  prompts_.erase(prompt);
  handed.handed = serving::Handover{request.first_token};
  sink_->hand_over(std::move(handed), now);
}

std::optional<std::uint64_t> EngineService::serving() const {
  if (offline_ || queue_.running() == nullptr) return std::nullopt;
  return scheduler_.oldest_running();
}

std::vector<SimTime> EngineService::unfinished() const {
  std::vector<SimTime> arrivals;
  for (const auto& request : unfinished_tokens()) arrivals.push_back(request.arrival);
  return arrivals;
}

std::vector<serving::UnfinishedRequest> EngineService::unfinished_tokens() const {
  if (offline_) return {};
  std::vector<serving::UnfinishedRequest> requests = scheduler_.unfinished();
  if (sink_ == nullptr) return requests;
  const auto underway = sink_->underway();
  requests.insert(requests.end(), underway.begin(), underway.end());
  std::ranges::stable_sort(requests, {}, &serving::UnfinishedRequest::arrival);
  return requests;
}

}  // namespace bubblesim::workload

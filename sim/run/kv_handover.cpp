#include "sim/run/kv_handover.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::run {

workload::EngineService& engine_of(FillerInstance& instance) {
  auto* engine = dynamic_cast<workload::EngineService*>(instance.service.get());
  BUBBLESIM_CHECK(engine != nullptr, "an instance with prefill apart runs no engine");
  return *engine;
}

DecodePool::DecodePool(const std::vector<FillerInstance*>& instances) {
  for (FillerInstance* instance : instances) {
    decoders_.push_back({instance, &engine_of(*instance)});
  }
}

std::size_t DecodePool::load(const Decoder& decoder) {
  const serving::Scheduler& scheduler = *decoder.service->scheduler();
  return scheduler.waiting() + scheduler.running() + decoder.coming;
}

std::size_t DecodePool::choose() {
  const auto least = std::ranges::min_element(decoders_, {}, load);
  ++least->coming;
  return static_cast<std::size_t>(least - decoders_.begin());
}

void DecodePool::arrive(std::size_t instance, const serving::Request& request, SimTime now) {
  Decoder& decoder = decoders_[instance];
  --decoder.coming;
  decoder.service->take_over(request, now);
  decoder.instance->note_queue(now);
}

KvLink::KvLink(engine::Engine& engine, const synth::ServerPlan& plan, DecodePool& pool)
    : engine_(engine), plan_(plan), pool_(pool),
      entity_(engine.add_entity(*this, engine::Phase::kArrival)) {}

void KvLink::hand_over(serving::Request request, SimTime now) {
  const SimTime begin = transfers_.empty() ? now : std::max(now, transfers_.back().ends);
  const SimTime ends = begin + synth::handover_time(plan_, request.prompt_tokens);
  transfers_.push_back({std::move(request), pool_.choose(), ends});
  if (transfers_.size() == 1) engine_.schedule(entity_, ends);
}

std::vector<serving::UnfinishedRequest> KvLink::underway() const {
  std::vector<serving::UnfinishedRequest> requests;
  for (const Transfer& transfer : transfers_) {
    requests.push_back({transfer.request.arrival, transfer.request.handed->first_token});
  }
  return requests;
}

void KvLink::on_event(SimTime now) {
  const Transfer done = std::move(transfers_.front());
  transfers_.pop_front();
  if (!transfers_.empty()) engine_.schedule(entity_, transfers_.front().ends);
  pool_.arrive(done.to, done.request, now);
}

}  // namespace bubblesim::run

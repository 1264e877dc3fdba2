#include "sim/run/kv_handover.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::run {

workload::EngineService& engine_of(FillerInstance& instance) {
  auto* engine = dynamic_cast<workload::EngineService*>(instance.service.get());
  BUBBLESIM_CHECK(engine != nullptr, "an instance of an engine's server runs no engine");
  return *engine;
}

DecodePool::DecodePool(const std::vector<FillerInstance*>& instances) {
  for (FillerInstance* instance : instances) {
    decoders_.push_back({instance, &engine_of(*instance)});
  }
}

std::size_t DecodePool::load(const Decoder& decoder) {
  const serving::Scheduler& scheduler = *decoder.service->schedulers().front();
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

KvLink::KvLink(engine::Engine& engine, const synth::ServerPlan& plan, GpuId from,
               DecodePool& pool, const SharedLinks* links)
    : engine_(engine), plan_(plan), source_(from), pool_(pool), links_(links),
      entity_(engine.add_entity(*this, engine::Phase::kArrival)) {
  if (links_ != nullptr) meeting_ = links_->rendezvous.add({1, &send_});
}

void KvLink::hand_over(serving::Request request, SimTime now) {
  transfers_.push_back({std::move(request), pool_.choose()});
  if (transfers_.size() == 1) begin(now);
}

void KvLink::begin(SimTime now) {
  const Transfer& next = transfers_.front();
  const std::uint32_t tokens = next.request.prompt_tokens;
  if (links_ == nullptr) {
    return engine_.schedule(entity_, now + synth::handover_time(plan_, tokens));
  }
  network::Group ends;
  ends.listed = {links_->places[source_.index()], links_->places[pool_.gpu(next.target).index()]};
  send_ = links_->topology.plan(network::CollectivePattern::kSendRecv,
                                synth::handover_bytes(plan_, tokens), ends);
  send_.latency += synth::handover_writes(plan_, tokens);
  links_->rendezvous.arrive(meeting_, *this, 0, now);
}

void KvLink::finish(SimTime now) {
  const Transfer done = std::move(transfers_.front());
  transfers_.pop_front();
  if (!transfers_.empty()) begin(now);
  pool_.arrive(done.target, done.request, now);
}

void KvLink::on_all_arrived(std::uint64_t, SimTime now) {
  links_->rendezvous.end(meeting_, *this, 0);
  finish(now);
}

std::vector<serving::UnfinishedRequest> KvLink::underway() const {
  std::vector<serving::UnfinishedRequest> requests;
  for (const Transfer& transfer : transfers_) {
    requests.push_back({transfer.request.arrival, transfer.request.handed->first_token});
  }
  return requests;
}

void KvLink::on_event(SimTime now) { finish(now); }

}  // namespace bubblesim::run

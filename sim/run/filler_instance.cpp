#include "sim/run/filler_instance.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "sim/base/check.hpp"
#include "sim/serving/scheduler.hpp"

namespace bubblesim::run {

workload::RequestService& FillerInstance::served_by() const {
  return group == nullptr ? *service : *group->instances.front()->service;
}

void FillerInstance::on_served(const workload::ServedRequest& request) {
  if (request.output_tokens > 0) count_tokens(request);
  if (mode != observe::FillerMode::kOnline) {
    if (request.end >= warmup_) ++completed;
    return;
  }
  if (timeline_ != nullptr) {
    timeline_->add({gpu, client, timeline_->intern("request"), observe::SliceKind::kRequest,
                    request.arrival, request.end, request.number});
  }
  if (request.end < warmup_) {
    --before;
    return;
  }
  ++completed;
  if (request.arrival >= warmup_) latency.add(request.end - request.arrival);
}

void FillerInstance::count_tokens(const workload::ServedRequest& request) {
  if (request.end < warmup_) return;
  server.output_tokens += request.output_tokens;
  if (mode != observe::FillerMode::kOnline || request.arrival < warmup_) return;
  const observe::ServedTokens tokens{*request.first_token - request.arrival,
                                     request.end - request.arrival, request.output_tokens};
  server.ttft.add(tokens.ttft);
  if (const auto tpot = tokens.tpot()) server.tpot.add(*tpot);
  if (limits && observe::keeps(tokens, *limits)) ++server.within_limits;
}

void ServerTally::count_blocks(SimTime now) {
  if (now <= counted_until) return;
  block_seconds += static_cast<double>(blocks_held) * to_seconds(now - counted_until);
  counted_until = now;
}

void FillerInstance::on_scheduled(SimTime now) {
  server.count_blocks(now);
  server.blocks_held = 0;
  double all = 0;
  for (const serving::Scheduler* scheduler : service->schedulers()) {
    server.blocks_held += scheduler->blocks_used();
    all += scheduler->spec().kv_blocks;
  }
  if (timeline_ == nullptr) return;
  if (!cache_track_) {
    cache_track_ = timeline_->add_track(gpu, "KV cache %, client " + std::to_string(client.value));
  }
  timeline_->add(observe::CounterSample{*cache_track_, now,
                                        100 * static_cast<double>(server.blocks_held) / all});
}

void FillerInstance::on_token_gaps(std::span<const Duration> gaps, SimTime now) {
  if (now < warmup_ || mode != observe::FillerMode::kOnline) return;
  for (const Duration gap : gaps) server.tbt.add(gap);
}

void FillerInstance::on_batch(std::uint64_t requests, SimTime now) {
  if (now >= warmup_) ++passes;
  if (keeps_course) {
    if (last_batch_ && *last_batch_ >= warmup_) {
      course.push_back({static_cast<double>(requests), now - *last_batch_});
    }
    last_batch_ = now;
  }
  note_queue(now);
  if (work != nullptr) work->on_work_done(*this, requests, now);
}

void FillerInstance::note_queue(SimTime now) {
  if (timeline_ == nullptr || mode == observe::FillerMode::kOffline) return;
  if (!queue_track_) {
    queue_track_ = timeline_->add_track(gpu, "queued requests, client " +
                                                 std::to_string(client.value));
  }
  timeline_->add(observe::CounterSample{*queue_track_, now,
                                        static_cast<double>(service->queued())});
}

ArrivalRouter::ArrivalRouter(engine::Engine& engine,
                             std::unique_ptr<workload::ArrivalProcess> process,
                             std::vector<FillerInstance*> instances, SimTime warmup)
    : engine_(engine), process_(std::move(process)), instances_(std::move(instances)),
      warmup_(warmup), entity_(engine.add_entity(*this, engine::Phase::kArrival)) {}

void ArrivalRouter::start() {
  if (const auto first = process_->next()) engine_.schedule(entity_, *first);
}

void ArrivalRouter::on_event(SimTime now) {
  const std::uint64_t first = number_;
  std::optional<SimTime> next;
  do {
    deal(now);
    next = process_->next();
  } while (next && *next <= now);
  serve_from(first, now);
  if (next) engine_.schedule(entity_, *next);
}

void ArrivalRouter::deal(SimTime now) {
  FillerInstance& instance = instance_of(number_);
  if (now >= warmup_) {
    ++instance.arrived;
  } else if (instance.admitted) {
    ++instance.before;
  }
  if (instance.admitted) {
    instance.service->enqueue(number_, now);
  } else if (now >= warmup_) {
    ++instance.refused;
  }
  ++number_;
}

void ArrivalRouter::serve_from(std::uint64_t first, SimTime now) {
  const std::uint64_t last = std::min<std::uint64_t>(number_, first + instances_.size());
  for (std::uint64_t request = first; request < last; ++request) {
    FillerInstance& instance = instance_of(request);
    if (!instance.admitted) continue;
    instance.service->serve_waiting(now);
    instance.note_queue(now);
  }
}

namespace {

using workload::ListedLengths;
using workload::RecordedLength;

std::string why_not(serving::ArrivalOutcome what, const serving::SchedulerSpec& spec) {
  switch (what) {
    case serving::ArrivalOutcome::kLongerThanWindow:
      return "max_model_len " + std::to_string(spec.max_model_len) + " holds together";
    case serving::ArrivalOutcome::kLargerThanCache:
      return "the KV cache of " + std::to_string(spec.kv_blocks) + " blocks of " +
             std::to_string(spec.block_size) + " tokens holds";
    case serving::ArrivalOutcome::kLargerThanBudget:
      return "max_num_batched_tokens " + std::to_string(spec.max_num_batched_tokens) +
             " computes as a whole";
    case serving::ArrivalOutcome::kQueued: break;
  }
  return {};
}

Result<void> check_length(const RecordedLength& length, const serving::SchedulerSpec& spec,
                          const std::string& file, const std::string& place) {
  serving::Request request;
  request.prompt_tokens = length.prompt_tokens;
  request.output_tokens = length.output_tokens;
  const serving::ArrivalOutcome what = serving::Scheduler::admissible(spec, request);
  if (what == serving::ArrivalOutcome::kQueued) return {};
  return fail(file, place,
              "found a request of " + std::to_string(length.prompt_tokens) + " prompt and " +
                  std::to_string(length.output_tokens) + " output tokens; expected at most what " +
                  why_not(what, spec));
}

Result<RequestsRead> read_file(const std::string& path, workload::ArrivalFormat format,
                               ListedLengths::Pick pick, const serving::SchedulerSpec& spec) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      workload::RecordedArrivals recorded,
      workload::read_arrivals(path, format, workload::Lengths::kRead));
  for (std::size_t i = 0; i < recorded.lengths.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(
        check_length(recorded.lengths[i], spec, path, "request " + std::to_string(i + 1)));
  }
  RequestsRead read{ListedLengths{std::move(recorded.lengths), pick}};
  read.arrivals = std::move(recorded);
  return read;
}

}  // namespace

Result<RequestsRead> server_requests(const FillerConfig& filler,
                                     const serving::SchedulerSpec& spec) {
  const auto& names = *std::get<synth::InferenceNames>(filler.program).engine;
  const auto* arrivals =
      filler.arrivals ? std::get_if<workload::FileArrivals>(&*filler.arrivals) : nullptr;
  if (!names.requests.lengths) {
    return read_file(arrivals->path, arrivals->format, ListedLengths::Pick::kInOrder, spec);
  }
  if (const auto* file = std::get_if<synth::RequestNames::File>(&*names.requests.lengths)) {
    BUBBLESIM_ASSIGN_OR_RETURN(RequestsRead read,
                               read_file(file->path, file->format, file->pick, spec));
    const bool of_arrivals = arrivals != nullptr && arrivals->path == file->path &&
                             arrivals->format == file->format &&
                             file->pick == ListedLengths::Pick::kInOrder;
    if (of_arrivals) return read;
    read.counters = std::move(read.arrivals->counters);
    read.arrivals.reset();
    return read;
  }
  const auto& drawn = std::get<workload::DrawnLengths>(*names.requests.lengths);
  BUBBLESIM_RETURN_IF_ERROR(check_length(workload::largest(drawn), spec, {},
                                         "filler \"" + filler.name + "\": requests"));
  return RequestsRead{drawn};
}

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

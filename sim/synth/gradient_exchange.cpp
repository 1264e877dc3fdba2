#include "sim/synth/gradient_exchange.hpp"

#include <numeric>

#include "sim/base/check.hpp"
#include "sim/synth/rank_memory.hpp"

namespace bubblesim::synth {
namespace {

using network::CollectiveKind;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The replicas that exchange gradients in every iteration.
Communicator replicas_of(const JobPlan& plan, const RankPlace& place) {
  return plan.plan().wide_area.mode == WideAreaMode::kEveryIteration ? plan.grid.data(place)
                                                                     : plan.grid.region(place);
}

constexpr double kNormBytes = 8;  // a squared norm and an overflow flag, fp32

}  // namespace

GradientExchange::GradientExchange(RankEmitter& emitter)
    : emitter_(emitter), replicas_(replicas_of(emitter.plan(), emitter.place())),
      expert_replicas_(emitter.plan().grid.expert_data(emitter.place())) {}

bool GradientExchange::shards_parameters() const {
  return emitter_.plan().plan().sharding == Sharding::kParameters && replicas_.group.size() > 1;
}

std::uint32_t GradientExchange::call(Channel channel, CollectiveKind kind, double bytes,
                                     const Communicator& with, std::string_view name) {
  CollectiveCall call;
  call.use = {channel, with.first_rank, uses_[channel]++};
  call.kind = kind;
  call.bytes = bytes;
  call.with = with;
  call.stream = kGradientStream;
  call.name = name;
  return emitter_.launch(call, emitter_.plan().request.software.collective_call);
}

// Layers up to `prefetch` ahead are gathered; launching after all compute so far keeps no more
// than those in memory.
void GradientExchange::before_layer(const std::vector<std::uint32_t>& layers, std::size_t at) {
  if (!shards_parameters()) return;
  if (at == 0) gathered_.clear();
  const std::size_t last = at + emitter_.plan().plan().gradients.prefetch;
  for (std::size_t i = at; i <= last && i < layers.size(); ++i) gather(layers[i]);
  if (const auto found = gathered_.find(layers[at]); found != gathered_.end()) {
    emitter_.wait_next(found->second);
  }
}

void GradientExchange::gather(std::uint32_t layer) {
  if (gathered_.contains(layer)) return;
  const JobPlan& plan = emitter_.plan();
  const double elements = sum(plan.model.work.kinds[plan.kind_of(layer)].parameter_tensors);
  if (elements == 0) return;
  const double bytes = elements * model::bytes_of(plan.plan().precision);
  gathered_[layer] = call(Channel::kData, CollectiveKind::kAllGather, bytes, replicas_,
                          "gather parameters");
}

void GradientExchange::after_backward(std::uint32_t layer) {
  if (!shards_parameters()) return;
  const JobPlan& plan = emitter_.plan();
  const double elements = sum(plan.model.work.kinds[plan.kind_of(layer)].parameter_tensors);
  if (elements == 0) return;
  reduce(elements * plan.plan().gradients.element_bytes, Channel::kData, replicas_);
}

void GradientExchange::layer_done(std::uint32_t layer) {
  const JobPlan& plan = emitter_.plan();
  const model::LayerWork& work = plan.model.work.kinds[plan.kind_of(layer)];
  expert_elements_ += sum(work.expert_tensors);
  if (shards_parameters()) return;
  for (auto tensor = work.parameter_tensors.rbegin(); tensor != work.parameter_tensors.rend();
       ++tensor) {
    add(*tensor);
  }
}

void GradientExchange::add(double elements) {
  const GradientPlan& plan = emitter_.plan().plan().gradients;
  if (plan.sync == GradientSync::kAfterBackward) {
    late_elements_ += elements;
    return;
  }
  bucket_.elements += elements;
  const Bytes limit = bucket_.sent == 0 ? plan.first_bucket : plan.bucket;
  if (bucket_.elements * plan.element_bytes >= static_cast<double>(limit.value)) flush();
}

void GradientExchange::flush() {
  if (bucket_.elements == 0) return;
  const double bytes = bucket_.elements * emitter_.plan().plan().gradients.element_bytes;
  reduce(bytes, Channel::kData, replicas_);
  bucket_.elements = 0;
  ++bucket_.sent;
}

void GradientExchange::reduce(double bytes, Channel channel, const Communicator& with) {
  if (with.group.size() <= 1 || bytes == 0) return;
  const bool split = emitter_.plan().plan().sharding != Sharding::kNone;
  reductions_.push_back(call(channel,
                             split ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                             bytes, with, split ? "scatter gradients" : "reduce gradients"));
}

void GradientExchange::finish() {
  flush();
  bucket_.sent = 0;
  const double element_bytes = emitter_.plan().plan().gradients.element_bytes;
  reduce(late_elements_ * element_bytes, Channel::kData, replicas_);
  late_elements_ = 0;
  reduce(expert_elements_ * element_bytes, Channel::kExpertData, expert_replicas_);
  expert_elements_ = 0;
  reduce_tied_embeddings();
  for (const std::uint32_t op : reductions_) emitter_.wait_next(op);
  reductions_.clear();
}

// Where first and last stage hold a copy of the same matrix, they add up its gradients.
void GradientExchange::reduce_tied_embeddings() {
  const JobPlan& plan = emitter_.plan();
  const double elements =
      sum(plan.model.work.kinds[plan.model.work.layers.back()].shared_tensors);
  if (elements == 0) return;
  const std::uint32_t first = plan.stages.front().pipeline;
  const std::uint32_t last = plan.stages.back().pipeline;
  const std::uint32_t here = emitter_.place().pipeline;
  if (first == last || (here != first && here != last)) return;
  RankPlace at = emitter_.place();
  at.pipeline = first;
  reductions_.push_back(call(Channel::kEmbedding, CollectiveKind::kAllReduce,
                             elements * plan.plan().gradients.element_bytes,
                             plan.grid.pair(at, last), "reduce tied embeddings"));
}

void GradientExchange::step(std::uint32_t iteration) {
  agree_on_norm();
  run_optimizer();
  gather_updated();
  exchange_regions(iteration);
}

// The host reads the norm before it goes on.
void GradientExchange::agree_on_norm() {
  const JobPlan& plan = emitter_.plan();
  if (plan.request.software.gradient_norm == GradientNorm::kNone) return;
  const Communicator all = plan.grid.model(emitter_.place());
  if (all.group.size() <= 1) return;
  const std::uint32_t op =
      call(Channel::kNorm, CollectiveKind::kAllReduce, kNormBytes, all, "reduce norm");
  emitter_.wait_next(op);
  emitter_.writer().wait_for(op);
}

void GradientExchange::run_optimizer() {
  const JobPlan& plan = emitter_.plan();
  const Elements elements = elements_of(plan, emitter_.place().pipeline);
  const bool split = plan.plan().sharding != Sharding::kNone;
  const double own = elements.shared / (split ? replicas_.group.size() : 1) +
                     elements.experts / (split ? expert_replicas_.group.size() : 1);
  if (own == 0) return;
  const KernelTimer timer(plan.request.gpu, plan.request.efficiency,
                          plan.request.software.slowdown);
  const auto work = model::optimizer_work(own, plan.plan().optimizer);
  BUBBLESIM_CHECK(work.has_value(), "a rank's parameters are a number");
  for (const model::WorkItem& item : *work) {
    emitter_.emit(timer.time(std::get<model::KernelWork>(item)), Pass::kOptimizer);
  }
}

void GradientExchange::gather_updated() {
  const JobPlan& plan = emitter_.plan();
  const Sharding sharding = plan.plan().sharding;
  const bool stale = sharding == Sharding::kOptimizer || sharding == Sharding::kGradients;
  if (!stale || replicas_.group.size() <= 1) return;
  const Elements elements = elements_of(plan, emitter_.place().pipeline);
  emitter_.wait_next(call(Channel::kData, CollectiveKind::kAllGather,
                          elements.shared * model::bytes_of(plan.plan().precision), replicas_,
                          "gather parameters"));
}

void GradientExchange::exchange_regions(std::uint32_t iteration) {
  const JobPlan& plan = emitter_.plan();
  const WideAreaPlan& wide = plan.plan().wide_area;
  if (wide.mode == WideAreaMode::kEveryIteration || (iteration + 1) % wide.every != 0) return;
  const Communicator regions = plan.grid.across_regions(emitter_.place());
  if (regions.group.size() <= 1) return;
  const Elements elements = elements_of(plan, emitter_.place().pipeline);
  const double all = elements.shared + elements.experts;
  const bool averages = wide.mode == WideAreaMode::kAveraging;
  CollectiveCall call;
  call.use = {Channel::kWideArea, regions.first_rank, uses_[Channel::kWideArea]++};
  call.bytes = all * (averages ? model::bytes_of(plan.plan().precision)
                               : plan.plan().gradients.element_bytes);
  call.with = regions;
  call.stream = kWideAreaStream;
  call.name = averages ? "average parameters" : "exchange gradients between regions";
  const std::uint32_t op = emitter_.launch(call, plan.request.software.collective_call);
  if (averages) emitter_.wait_next(op);
}

}  // namespace bubblesim::synth

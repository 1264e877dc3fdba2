#include "sim/synth/gradient_exchange.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::synth {
namespace {

using network::CollectivePattern;

constexpr double kNormBytes = 8;  // a squared norm and an overflow flag, fp32

double weight_bytes(const ParallelPlan& plan) {
  return model::optimizer_memory(plan.plan().optimizer).weights;
}

}  // namespace

GradientExchange::GradientExchange(RankEmitter& emitter)
    : emitter_(emitter), scatters_(scattering_of(emitter.plan().plan())),
      shared_{Channel::kData, emitter.plan().grid.replicas(emitter.place())},
      experts_{Channel::kExpertData, emitter.plan().grid.expert_replicas(emitter.place())} {
  prepare_optimizer();
}

double GradientExchange::element_bytes() const {
  return emitter_.plan().plan().gradients.element_bytes;
}

std::uint32_t GradientExchange::call(Channel channel, CollectivePattern kind, double bytes,
                                     const Communicator& communicator, std::string_view name,
                                     std::uint16_t stream) {
  CollectiveCall call;
  call.use = {channel, communicator.first_rank, uses_[channel]++};
  call.kind = kind;
  call.bytes = bytes;
  call.communicator = communicator;
  call.stream = stream;
  call.name = name;
  return emitter_.launch(call, emitter_.plan().request.software.collective_call);
}

// Layers up to `prefetch` ahead are gathered; launching after all compute so far keeps no more
// than those in memory.
void GradientExchange::before_layer(const std::vector<std::uint32_t>& layers, std::size_t at,
                                    HostPass pass) {
  const PlanSpec& plan = emitter_.plan().plan();
  if (plan.sharding != Sharding::kParameters) return;
  Gathered& gathered = gathered_[emitter_.lane_number()];
  if (at == 0) gathered.clear();
  const std::size_t last = at + plan.gradients.prefetch;
  for (std::size_t i = at; i <= last && i < layers.size(); ++i) gather(layers[i], pass, gathered);
  for (const std::uint32_t op : gathered[layers[at]]) emitter_.wait_next(op);
}

void GradientExchange::gather(std::uint32_t layer, HostPass pass, Gathered& gathered) {
  const auto [place, fresh] = gathered.try_emplace(layer);
  if (!fresh) return;
  const ParallelPlan& plan = emitter_.plan();
  const Elements elements = elements_of_layer(plan, layer);
  const ParameterPlan& parameters = plan.plan().parameters;
  const bool second = pass == HostPass::kBackward && parameters.secondary > 0;
  const double bytes = !second && parameters.element_bytes > 0 ? parameters.element_bytes
                                                               : weight_bytes(plan);
  if (const std::uint32_t among = second ? parameters.secondary : parameters.primary; among > 0) {
    const Communicator holders = plan.grid.neighbours(emitter_.place(), among);
    if (holders.group.size() <= 1) return;
    const double count = second ? elements.shared : elements.shared + elements.experts;
    place->second.push_back(call(second ? Channel::kSecondary : Channel::kPrimary,
                                 CollectivePattern::kAllGather, count * bytes, holders,
                                 second ? "gather second copy" : "gather parameters"));
    return;
  }
  const auto add = [&](const Family& family, double count) {
    if (count == 0 || family.replicas.group.size() <= 1) return;
    place->second.push_back(call(family.channel, CollectivePattern::kAllGather, count * bytes,
                                 family.replicas, "gather parameters"));
  };
  add(shared_, elements.shared);
  add(experts_, elements.experts);
}

void GradientExchange::after_backward(std::uint32_t layer, LastPass last) {
  const ParallelPlan& plan = emitter_.plan();
  if (scatters_ != Scattering::kEachMicroBatch && last == LastPass::kNo) return;
  if (plan.plan().sharding == Sharding::kParameters) {
    const Elements elements = elements_of_layer(plan, layer);
    reduce(shared_, elements.shared);
    reduce(experts_, elements.experts);
    return;
  }
  const model::LayerWork& work = plan.model.work.kinds[plan.kind_of(layer)];
  const auto add_all = [this](Family& family, const std::vector<double>& tensors) {
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) add(family, *tensor);
  };
  if (plan.embeddings_apart()) add_all(shared_, work.shared_tensors);
  add_all(experts_, work.expert_tensors);
  add_all(shared_, work.parameter_tensors);
}

void GradientExchange::end_pass(LastPass last) {
  if (scatters_ == Scattering::kAtEnd) return;
  if (scatters_ == Scattering::kEachRun && last == LastPass::kNo) return;
  flush(shared_);
  flush(experts_);
}

void GradientExchange::add(Family& family, double elements) {
  const GradientPlan& plan = emitter_.plan().plan().gradients;
  if (plan.sync == GradientSync::kAfterBackward) {
    family.late += elements;
    return;
  }
  family.bucket += elements;
  const Bytes limit = family.sent == 0 ? plan.first_bucket : plan.bucket;
  if (family.bucket * plan.element_bytes >= static_cast<double>(limit.value)) flush(family);
}

void GradientExchange::flush(Family& family) {
  if (family.bucket == 0) return;
  reduce(family, std::exchange(family.bucket, 0));
  ++family.sent;
}

void GradientExchange::reduce(const Family& family, double elements) {
  if (family.replicas.group.size() <= 1 || elements == 0) return;
  const bool split = emitter_.plan().plan().sharding != Sharding::kNone;
  last_reduction_ = call(family.channel,
                         split ? CollectivePattern::kReduceScatter : CollectivePattern::kAllReduce,
                         elements * element_bytes(), family.replicas,
                         split ? "scatter gradients" : "reduce gradients");
}

void GradientExchange::finish() {
  for (Family* family : {&shared_, &experts_}) {
    flush(*family);
    family->sent = 0;
    reduce(*family, std::exchange(family->late, 0));
  }
  reduce_split_norms();
  reduce_tied_embeddings();
  reduce_copies();
  if (last_reduction_ != program::kNoIndex) emitter_.wait_next(last_reduction_);
  last_reduction_ = program::kNoIndex;
}

// Each tensor rank has seen its part of the tokens only.
void GradientExchange::reduce_split_norms() {
  const ParallelPlan& plan = emitter_.plan();
  const Communicator among = plan.grid.tensor(emitter_.place());
  double elements = 0;
  for_each_layer(plan, emitter_.place().pipeline, [&](std::uint32_t layer) {
    elements += plan.model.work.kinds[plan.kind_of(layer)].token_split_elements;
  });
  if (elements == 0 || among.group.size() <= 1) return;
  last_reduction_ = call(Channel::kTokenSplit, CollectivePattern::kAllReduce,
                         elements * element_bytes(), among, "reduce norm gradients");
}

// Where first and last stage hold a copy of the same matrix, they add up its gradients.
void GradientExchange::reduce_tied_embeddings() {
  const ParallelPlan& plan = emitter_.plan();
  const double elements =
      sum(plan.model.work.kinds[plan.model.work.layers.back()].shared_tensors);
  if (elements == 0 || !plan.embeddings_apart()) return;
  const std::uint32_t first = plan.stages.front().pipeline;
  const std::uint32_t last = plan.stages.back().pipeline;
  const std::uint32_t own = emitter_.place().pipeline;
  if (own != first && own != last) return;
  RankPlace at = emitter_.place();
  at.pipeline = first;
  last_reduction_ = call(Channel::kEmbedding, CollectivePattern::kAllReduce,
                         elements * element_bytes(), plan.grid.pair(at, last),
                         "reduce tied embeddings");
}

// Ranks r and p-1-r hold the same stages, each with its half of the micro-batches' gradients; of
// those, what is the rank's own after the replicas have split them.
void GradientExchange::reduce_copies() {
  const ParallelPlan& plan = emitter_.plan();
  if (plan.copies == 1) return;
  const std::uint32_t own = emitter_.place().pipeline;
  const std::uint32_t other = plan.plan().pipeline - 1 - own;
  if (other == own) return;
  RankPlace at = emitter_.place();
  at.pipeline = std::min(own, other);
  last_reduction_ = call(Channel::kCopies, CollectivePattern::kAllReduce,
                         own_elements(plan, own) * element_bytes(),
                         plan.grid.pair(at, std::max(own, other)), "reduce stage copies");
}

void GradientExchange::step(std::uint32_t iteration, HostTransfers& host) {
  agree_on_norm();
  if (updates_on_host(emitter_.plan().plan())) host.update();
  for (const Launches& launches : optimizer_) {
    for (std::uint32_t i = 0; i < launches.count; ++i)
      emitter_.emit(launches.kernel, HostPass::kOptimizer);
  }
  gather_updated();
  exchange_regions(iteration);
}

// The host reads the norm before it goes on. Replicas that hold parts of the gradients take part.
void GradientExchange::agree_on_norm() {
  const ParallelPlan& plan = emitter_.plan();
  if (plan.request.software.gradient_norm == GradientNorm::kNone) return;
  const bool parts = plan.plan().sharding != Sharding::kNone &&
                     plan.plan().wide_area.mode == WideAreaMode::kEveryIteration;
  const Communicator all = parts ? plan.grid.world() : plan.grid.model(emitter_.place());
  if (all.group.size() <= 1) return;
  const std::uint32_t op =
      call(Channel::kNorm, CollectivePattern::kAllReduce, kNormBytes, all, "reduce norm");
  emitter_.wait_next(op);
  emitter_.writer().wait_for(op);
}

void GradientExchange::prepare_optimizer() {
  const ParallelPlan& plan = emitter_.plan();
  const double own = own_elements(plan, emitter_.place().pipeline);
  if (own == 0 || updates_on_host(plan.plan())) return;
  const KernelTimer timer = timer_of(plan.request);
  const auto work = model::optimizer_work(own, plan.plan().optimizer);
  BUBBLESIM_CHECK(work.has_value(), "a rank's parameters are a number");
  const model::KernelWork* before = nullptr;
  for (const model::WorkItem& item : *work) {
    const auto& kernel = std::get<model::KernelWork>(item);
    if (before == nullptr || before->name != kernel.name || before->bytes != kernel.bytes) {
      optimizer_.push_back({emitter_.writer().prepare(timer.time(kernel)), 0});
    }
    ++optimizer_.back().count;
    before = &kernel;
  }
}

void GradientExchange::gather_updated() {
  const ParallelPlan& plan = emitter_.plan();
  const Sharding sharding = plan.plan().sharding;
  const Elements elements = elements_of(plan, emitter_.place().pipeline);
  if (const std::uint32_t primary = plan.plan().parameters.primary; primary > 0) {
    const Communicator likes = plan.grid.likes(emitter_.place(), primary);
    if (likes.group.size() <= 1) return;
    emitter_.wait_next(call(Channel::kUpdated, CollectivePattern::kAllGather,
                            (elements.shared + elements.experts) / primary * weight_bytes(plan),
                            likes, "gather updated parameters"));
    return;
  }
  if (sharding != Sharding::kOptimizer && sharding != Sharding::kGradients) return;
  const auto add = [&](const Family& family, double count) {
    if (count == 0 || family.replicas.group.size() <= 1) return;
    emitter_.wait_next(call(family.channel, CollectivePattern::kAllGather,
                            count * weight_bytes(plan),
                            family.replicas, "gather parameters"));
  };
  add(shared_, elements.shared);
  add(experts_, elements.experts);
}

// The replicas of a region hold the same; each exchanges its part with its likes, so that a region
// sends everything once (Cloudless-Training: one parameter server a region).
void GradientExchange::exchange_regions(std::uint32_t iteration) {
  const ParallelPlan& plan = emitter_.plan();
  const WideAreaPlan& wide = plan.plan().wide_area;
  if (wide.mode == WideAreaMode::kEveryIteration || (iteration + 1) % wide.interval != 0) return;
  const Communicator regions = plan.grid.across_regions(emitter_.place());
  if (regions.group.size() <= 1) return;
  const bool averages = wide.mode == WideAreaMode::kAveraging;
  const Elements all = elements_of(plan, emitter_.place().pipeline);
  const double bytes = (all.shared + all.experts) / shared_.replicas.group.size() *
                       (averages ? weight_bytes(plan) : element_bytes());
  const std::uint32_t op =
      call(Channel::kWideArea, CollectivePattern::kAllReduce, bytes, regions,
           averages ? "average parameters" : "exchange gradients between regions", kWideAreaStream);
  if (averages) emitter_.wait_next(op);
}

}  // namespace bubblesim::synth

#include "sim/synth/transfers.hpp"

#include <algorithm>
#include <cmath>

#include "sim/synth/inference_program.hpp"
#include "sim/synth/rank_memory.hpp"

namespace bubblesim::synth {

StageTransfers::StageTransfers(RankEmitter& emitter) : emitter_(emitter) {}

void StageTransfers::begin_iteration(std::uint32_t iteration) {
  iteration_ = iteration;
  for (auto& [route, end] : ends_) {
    end.posted = 0;
    end.operations.clear();
  }
}

void StageTransfers::receive_inputs(std::uint32_t stage, std::uint32_t micro_batch) {
  for (const std::uint32_t from : emitter_.plan().graph.stages[stage].producers) {
    receive({from, stage, Channel::kForwardTransfer}, stage, micro_batch);
  }
}

void StageTransfers::receive_gradients(std::uint32_t stage, std::uint32_t micro_batch) {
  for (const std::uint32_t from : emitter_.plan().graph.stages[stage].consumers) {
    receive({from, stage, Channel::kBackwardTransfer}, stage, micro_batch);
  }
}

void StageTransfers::send_outputs(std::uint32_t stage, std::uint32_t micro_batch) {
  for (const std::uint32_t to : emitter_.plan().graph.stages[stage].consumers) {
    send({stage, to, Channel::kForwardTransfer}, micro_batch);
  }
}

void StageTransfers::send_gradients(std::uint32_t stage, std::uint32_t micro_batch) {
  for (const std::uint32_t to : emitter_.plan().graph.stages[stage].producers) {
    send({stage, to, Channel::kBackwardTransfer}, micro_batch);
  }
}

bool StageTransfers::is_local(const Route& route) const {
  const auto& stages = emitter_.plan().stages;
  return stages[route.from].pipeline == stages[route.to].pipeline;
}

std::vector<std::uint32_t> StageTransfers::sending_order(const Route& route) const {
  const ParallelPlan& plan = emitter_.plan();
  std::vector<std::uint32_t> order;
  const bool forward = route.channel == Channel::kForwardTransfer;
  for (const pipeline::Action& action :
       plan.schedule.actions[plan.stages[route.from].pipeline]) {
    if (forward && action.has_forward() && action.stage == route.from) {
      order.push_back(action.micro_batch);
    }
    if (!forward && action.has_input_grad() && action.backward_stage() == route.from) {
      order.push_back(action.backward_micro_batch());
    }
  }
  return order;
}

StageTransfers::End& StageTransfers::end_of(const Route& route) {
  const auto [place, fresh] = ends_.try_emplace(route);
  if (fresh) {
    place->second.stream = emitter_.new_stream();
    place->second.order = sending_order(route);
  }
  return place->second;
}

// The receiver's micro-batch may hold several of the sender's, or the other way round.
void StageTransfers::receive(const Route& route, std::uint32_t stage, std::uint32_t micro_batch) {
  if (is_local(route)) return;
  const pipeline::StageGraph& graph = emitter_.plan().graph;
  const auto [first, last] =
      pipeline::overlapping(graph.stages[stage], micro_batch, graph.stages[route.from]);
  End& end = end_of(route);
  for (std::uint32_t wanted = first; wanted < last; ++wanted) {
    while (!end.operations.contains(wanted) && end.posted < end.order.size()) {
      const std::uint32_t next = end.order[end.posted++];
      end.operations[next] = post(route, end, next);
    }
    const std::uint32_t op = end.operations.at(wanted);
    emitter_.wait_next(op);
    if (scatters()) gather_shares(route, end, wanted);
    if (emitter_.plan().request.software.pipeline_wait == PipelineWait::kHost) {
      emitter_.writer().wait_for(op);
    }
  }
}

// Where sequences are split over the tensor ranks, each sends its own part anyway.
bool StageTransfers::scatters() const {
  const ParallelPlan& plan = emitter_.plan();
  return plan.request.software.pipeline_tensors == PipelineTensors::kScattered &&
         plan.plan().tensor > 1 && !plan.plan().sequence_parallel;
}

void StageTransfers::gather_shares(const Route& route, const End& end,
                                   std::uint32_t micro_batch) {
  const ParallelPlan& plan = emitter_.plan();
  CollectiveCall call = call_of(route, end, micro_batch);
  const bool forward = route.channel == Channel::kForwardTransfer;
  call.kind = network::CollectivePattern::kAllGather;
  call.bytes *= plan.plan().tensor;
  call.communicator = plan.grid.tensor(emitter_.place());
  call.stream = kExchangeStream;
  call.name = forward ? "gather activations" : "gather gradients";
  call.use = {Channel::kReceived, call.communicator.first_rank,
              2 * call.use.number + (forward ? 0 : 1)};
  emitter_.wait_next(
      emitter_.launch_in_turn(call, plan.request.software.collective_call));
}

// What the earlier stage of the model puts out, or its gradient, for a micro-batch of the sender.
double StageTransfers::bytes_of(const Route& route) const {
  const ParallelPlan& plan = emitter_.plan();
  const bool forward = route.channel == Channel::kForwardTransfer;
  const std::uint32_t producer = forward ? route.from : route.to;
  const std::uint32_t consumer = forward ? route.to : route.from;
  const auto& consumers = plan.graph.stages[producer].consumers;
  const auto place = std::find(consumers.begin(), consumers.end(), consumer) - consumers.begin();
  const double bytes = plan.stages[producer].sent_bytes[static_cast<std::size_t>(place)];
  return bytes / plan.graph.stages[producer].micro_batch_size *
         plan.graph.stages[route.from].micro_batch_size;
}

CollectiveCall StageTransfers::call_of(const Route& route, const End& end,
                                       std::uint32_t micro_batch) const {
  const ParallelPlan& plan = emitter_.plan();
  RankPlace sender = emitter_.place();
  sender.pipeline = plan.stages[route.from].pipeline;
  CollectiveCall call;
  call.kind = network::CollectivePattern::kSendRecv;
  call.bytes = bytes_of(route) / (scatters() ? plan.plan().tensor : 1);
  call.communicator = plan.grid.pair(sender, plan.stages[route.to].pipeline);
  call.stream = end.stream;
  call.use.channel = route.channel;
  call.use.communicator = plan.grid.rank(sender);
  const std::uint64_t stages = plan.graph.size();
  call.use.number = ((iteration_ * stages + route.from) * stages + route.to) *
                        plan.schedule.micro_batches + micro_batch;
  return call;
}

std::uint32_t StageTransfers::post(const Route& route, End& end, std::uint32_t micro_batch) {
  CollectiveCall call = call_of(route, end, micro_batch);
  call.name = route.channel == Channel::kForwardTransfer ? "receive activations"
                                                         : "receive gradients";
  const ParallelPlan& plan = emitter_.plan();
  const Duration think = plan.request.software.transfer_call;
  return plan.plan().receives == Receives::kAhead ? emitter_.launch_at_once(call, think)
                                                  : emitter_.launch(call, think);
}

void StageTransfers::send(const Route& route, std::uint32_t micro_batch) {
  if (is_local(route)) return;
  End& end = end_of(route);
  CollectiveCall call = call_of(route, end, micro_batch);
  call.name = route.channel == Channel::kForwardTransfer ? "send activations" : "send gradients";
  (void)emitter_.launch_in_turn(call, emitter_.plan().request.software.transfer_call);
}

namespace {

// Passes over layers, forward and backward, that a rank makes in an iteration.
std::size_t layer_passes(const ParallelPlan& plan, std::uint32_t pipeline) {
  std::size_t passes = 0;
  const auto layers = [&](std::uint32_t stage) {
    return plan.stages[stage].layers.last - plan.stages[stage].layers.first;
  };
  for (const pipeline::Action& action : plan.schedule.actions[pipeline]) {
    if (action.has_forward()) passes += layers(action.stage);
    if (action.has_input_grad()) passes += layers(action.backward_stage());
  }
  return passes;
}

}  // namespace

bool updates_on_host(const PlanSpec& plan) { return plan.host.optimizer_per_s > 0; }

BytesPerSecond host_bandwidth(const ParallelPlan& plan) {
  const BytesPerSecond given = plan.plan().host.bandwidth;
  return given.value > 0 ? given : plan.request.gpu.host_bandwidth;
}

double checkpoint_bytes(const ParallelPlan& plan, std::uint32_t pipeline) {
  return split_over_replicas(plan, elements_of(plan, pipeline)) *
         model::optimizer_memory(plan.plan().optimizer).states;
}

HostTransfers::HostTransfers(RankEmitter& emitter) : emitter_(emitter) {
  const ParallelPlan& plan = emitter.plan();
  if (plan.plan().host.checkpoint_every == 0) return;
  const std::uint32_t pipeline = emitter.place().pipeline;
  piece_bytes_ = checkpoint_bytes(plan, pipeline) /
                 static_cast<double>(std::max<std::size_t>(layer_passes(plan, pipeline), 1));
}

std::uint16_t HostTransfers::stream_of(Way way) {
  const auto [place, fresh] = streams_.try_emplace(way);
  if (fresh) place->second = emitter_.new_stream();
  return place->second;
}

Duration HostTransfers::time_of(double bytes) const {
  return kCopyLatency +
         Duration{std::llround(bytes / host_bandwidth(emitter_.plan()).value * 1e9)};
}

std::uint32_t HostTransfers::copy(Way way, std::string_view name, double bytes,
                                  const std::vector<std::uint32_t>& after) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCopy;
  draft.stream = stream_of(way);
  draft.name = emitter_.writer().name(name);
  draft.duration = time_of(bytes);
  return emitter_.writer().launch(draft, after,
                                  {{}, emitter_.plan().request.software.launch_call});
}

double HostTransfers::kept_bytes(std::uint32_t layer) const {
  const ParallelPlan& plan = emitter_.plan();
  return plan.plan().host.activations *
         plan.model.work.kinds[plan.own_kind(layer, emitter_.place())].activation_bytes;
}

void HostTransfers::begin_iteration(std::uint32_t iteration) {
  const std::uint32_t checkpoint_every = emitter_.plan().plan().host.checkpoint_every;
  saves_ = checkpoint_every > 0 && iteration % checkpoint_every == 0;
  offloads_.clear();
  fetches_.clear();
  under_way_.clear();
}

// As many layers as are fetched ahead may be on their way out, and the one before this.
void HostTransfers::before_forward(std::uint32_t layer) {
  if (kept_bytes(layer) == 0) return;
  const std::size_t most = std::size_t{emitter_.plan().plan().host.ahead} + 1;
  if (under_way_.size() < most) return;
  emitter_.wait_next(under_way_[under_way_.size() - most]);
}

void HostTransfers::after_forward(std::uint32_t layer, std::uint32_t micro_batch) {
  const double bytes = kept_bytes(layer);
  if (bytes == 0) return;
  const std::uint32_t op =
      copy(Way::kOut, "activations to host", bytes, {emitter_.last_compute()});
  offloads_[{layer, micro_batch}] = op;
  under_way_.push_back(op);
}

// Not before the kernels so far: room for more layers than `ahead` is not kept.
void HostTransfers::fetch(const Key& key) {
  const auto offload = offloads_.find(key);
  if (offload == offloads_.end() || fetches_.contains(key)) return;
  fetches_[key] = copy(Way::kIn, "activations from host", kept_bytes(key.first),
                       {offload->second, emitter_.last_compute()});
}

void HostTransfers::before_backward(const std::vector<std::uint32_t>& layers, std::size_t at,
                                    std::uint32_t micro_batch) {
  const std::size_t last = at + emitter_.plan().plan().host.ahead;
  for (std::size_t i = at; i <= last && i < layers.size(); ++i) fetch({layers[i], micro_batch});
  const auto fetched = fetches_.find({layers[at], micro_batch});
  if (fetched != fetches_.end()) emitter_.wait_next(fetched->second);
}

void HostTransfers::after_pass() {
  if (!saves_ || piece_bytes_ == 0) return;
  last_piece_ = copy(Way::kOut, "checkpoint to host", piece_bytes_, {});
}

void HostTransfers::before_step() {
  if (last_piece_ != program::kNoIndex) emitter_.wait_next(last_piece_);
  last_piece_ = program::kNoIndex;
}

void HostTransfers::update() {
  const PlanSpec& plan = emitter_.plan().plan();
  const double own = own_elements(emitter_.plan(), emitter_.place().pipeline);
  const model::OptimizerMemory memory = model::optimizer_memory(plan.optimizer);
  const std::uint32_t out =
      copy(Way::kOut, "gradients to host", own * memory.gradients, emitter_.awaited());
  emitter_.writer().wait_for(out);
  emitter_.writer().pause(Duration{std::llround(own / plan.host.optimizer_per_s * 1e9)});
  emitter_.wait_next(copy(Way::kIn, "parameters from host", own * memory.weights, {}));
}

}  // namespace bubblesim::synth

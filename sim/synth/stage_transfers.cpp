#include "sim/synth/stage_transfers.hpp"

#include <algorithm>

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

}  // namespace bubblesim::synth

#include "sim/synth/rank_emitter.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::synth {
namespace {

using network::CollectivePattern;

constexpr std::uint32_t kCollectiveThreads = 544;
constexpr std::uint32_t kCollectiveRegisters = 96;
constexpr std::uint64_t kCollectiveSharedBytes = 16 << 10;

// Items up to the first exchange and those that follow it at once.
std::size_t until_exchange(std::span<const TimedItem> items) {
  const auto is_exchange = [](const TimedItem& item) {
    return std::holds_alternative<model::Communication>(item);
  };
  const auto exchange = std::find_if(items.begin(), items.end(), is_exchange);
  return static_cast<std::size_t>(std::find_if_not(exchange, items.end(), is_exchange) -
                                  items.begin());
}

}  // namespace

TimedKernel collective_kernel(std::uint32_t channels, const hardware::GpuSpec& gpu) {
  TimedKernel kernel;
  kernel.profile = program::profile_kernel(
      {channels, kCollectiveThreads, kCollectiveRegisters, kCollectiveSharedBytes},
      program::KernelClass::kMemory, gpu);
  kernel.launch.grid = {channels, 1, 1};
  kernel.launch.block = {kCollectiveThreads, 1, 1};
  kernel.launch.registers_per_thread = kCollectiveRegisters;
  kernel.launch.shared_memory_bytes = kCollectiveSharedBytes;
  return kernel;
}

OpDraft draft_of(const CollectiveCall& call, CollectiveTable& collectives, ProgramWriter& writer) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCollective;
  draft.stream = call.stream;
  draft.name = writer.name(call.name);
  draft.collective =
      collectives.find(call.use, call.kind, call.bytes, call.communicator, call.form);
  return draft;
}

CollectivePattern collective_kind(model::Exchange exchange) {
  switch (exchange) {
    case model::Exchange::kAllReduce: return CollectivePattern::kAllReduce;
    case model::Exchange::kAllGather: return CollectivePattern::kAllGather;
    case model::Exchange::kReduceScatter: return CollectivePattern::kReduceScatter;
    case model::Exchange::kAllToAll: return CollectivePattern::kAllToAll;
    case model::Exchange::kRing: break;
  }
  return CollectivePattern::kSendRecv;
}

RankEmitter::RankEmitter(const ParallelPlan& plan, CollectiveTable& collectives,
                         const RankPlace& place)
    : plan_(plan), collectives_(collectives), place_(place),
      writer_(plan.grid.rank(place), plan.request.gpu),
      kernels_(plan.model.kernels.size()) {}

CallCost RankEmitter::cost_of(HostPass pass) const {
  const SoftwareSpec& software = plan_.request.software;
  switch (pass) {
    case HostPass::kForward: return {software.forward_gap, software.launch_call};
    case HostPass::kBackward: return {software.backward_gap, software.launch_call};
    case HostPass::kOptimizer: break;
  }
  return {software.optimizer_gap, software.launch_call};
}

void RankEmitter::emit(std::span<const TimedItem> items, HostPass pass) {
  for (const TimedItem& item : items) {
    if (const auto* what = std::get_if<model::Communication>(&item)) {
      exchange(*what, pass);
      continue;
    }
    const std::uint32_t index = std::get<std::uint32_t>(item);
    OpDraft& kernel = kernels_[index];
    if (kernel.profile == program::kNoIndex) kernel = writer_.prepare(plan_.model.kernels[index]);
    emit(kernel, pass);
  }
}

void RankEmitter::emit_in_turns(std::span<const TimedItem> first,
                                std::span<const TimedItem> second, HostPass pass) {
  std::array parts{first, second};
  while (!parts[0].empty() || !parts[1].empty()) {
    for (part_ = 0; part_ < parts.size(); ++part_) {
      const std::size_t turn = until_exchange(parts[part_]);
      emit(parts[part_].first(turn), pass);
      parts[part_] = parts[part_].subspan(turn);
    }
  }
  part_ = 0;
}

void RankEmitter::join_parts() {
  auto& [first, second] = lanes_[lane_];
  first.waits.insert(first.waits.end(), second.waits.begin(), second.waits.end());
  first.overlapping.insert(first.overlapping.end(), second.overlapping.begin(),
                           second.overlapping.end());
  second = {};
}

void RankEmitter::emit(const OpDraft& kernel, HostPass pass) {
  last_compute_ = writer_.launch(kernel, lane().waits, cost_of(pass));
  lane().waits.clear();
  std::swap(lane().waits, lane().overlapping);
}

CollectiveCall RankEmitter::call_of(const model::Communication& what) {
  CollectiveCall call;
  call.kind = collective_kind(what.exchange);
  call.bytes = what.bytes;
  call.name = what.name;
  switch (what.axis) {
    case model::ParallelAxis::kTensor:
      call.use.channel = Channel::kTensor;
      call.communicator = plan_.grid.tensor(place_);
      if (const auto& overlap = plan_.plan().tensor_overlap) {
        call.form = {overlap->blocks, what.fused_bytes / call.communicator.group.size()};
      }
      break;
    case model::ParallelAxis::kContext:
      call.use.channel = Channel::kContext;
      call.communicator = what.exchange == model::Exchange::kRing ? plan_.grid.context_hop(place_)
                                                          : plan_.grid.context(place_);
      break;
    case model::ParallelAxis::kExpert:
      call.use.channel = Channel::kExpert;
      call.communicator = plan_.grid.expert(place_);
      break;
  }
  call.use.communicator = call.communicator.first_rank;
  return call;
}

// The kernel after the exchange waits for it, unless the exchange runs beside that one.
void RankEmitter::exchange(const model::Communication& what, HostPass pass) {
  CollectiveCall call = call_of(what);
  if (call.communicator.group.size() <= 1) return;
  call.use.number = uses_[call.use.channel]++;
  const SoftwareSpec& software = plan_.request.software;
  const std::uint32_t op = launch_in_turn(call, cost_of(pass).think + software.collective_call);
  if (software.exchange_wait == ExchangeWait::kHost) writer_.wait_for(op);
  (what.overlaps_next ? lane().overlapping : lane().waits).push_back(op);
}

std::uint32_t RankEmitter::launch(const CollectiveCall& call, Duration think) {
  if (last_compute_ == program::kNoIndex) return launch_after(call, think, {});
  return launch_after(call, think, {last_compute_});
}

std::vector<std::uint32_t> RankEmitter::awaited() {
  std::vector<std::uint32_t> after = lane().waits;
  after.insert(after.end(), lane().overlapping.begin(), lane().overlapping.end());
  if (last_compute_ != program::kNoIndex) after.push_back(last_compute_);
  return after;
}

std::uint32_t RankEmitter::launch_in_turn(const CollectiveCall& call, Duration think) {
  return launch_after(call, think, awaited());
}

std::uint32_t RankEmitter::launch_at_once(const CollectiveCall& call, Duration think) {
  return launch_after(call, think, {});
}

std::uint32_t RankEmitter::launch_after(const CollectiveCall& call, Duration think,
                                        const std::vector<std::uint32_t>& after) {
  OpDraft draft = draft_of(call, collectives_, writer_);
  draft.profile = collective_profile(draft.collective);
  return writer_.launch(draft, after, {think, plan_.request.software.launch_call});
}

std::uint32_t RankEmitter::collective_profile(std::uint32_t collective) {
  const std::uint32_t channels = collectives_.channels(collective);
  const auto [place, fresh] = profile_of_channels_.try_emplace(channels, 0);
  if (fresh) {
    const TimedKernel kernel = collective_kernel(channels, plan_.request.gpu);
    place->second = writer_.add_profile(kernel.profile, kernel.launch);
  }
  return place->second;
}

}  // namespace bubblesim::synth

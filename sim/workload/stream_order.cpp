#include "sim/workload/stream_order.hpp"

#include <algorithm>

namespace bubblesim::workload {
namespace {

using traces::HostCallKind;
using traces::StreamKind;

// By legacy default stream, the streams that block with it; nothing if there is no such pair.
std::vector<std::vector<std::uint32_t>> blocking_streams(const std::vector<traces::Stream>& all) {
  std::vector<std::vector<std::uint32_t>> blocking(all.size());
  bool any = false;
  for (std::uint32_t own = 0; own < all.size(); ++own) {
    if (all[own].kind != StreamKind::kLegacyDefault) continue;
    for (std::uint32_t other = 0; other < all.size(); ++other) {
      const bool same_device = all[other].device == all[own].device;
      if (all[other].kind != StreamKind::kBlocking || !same_device) continue;
      blocking[own].push_back(other);
      any = true;
    }
  }
  if (!any) blocking.clear();
  return blocking;
}

bool is_later(Before a, Before b) {
  return a.passes_back != b.passes_back ? a.passes_back < b.passes_back : a.op > b.op;
}

}  // namespace

StreamOrder::StreamOrder(const Draft& draft)
    : draft_(draft), tails_(draft.trace->streams.size()),
      blocking_(blocking_streams(draft.trace->streams)) {
  collect();
  if (draft.pass != nullptr) walk_pass();
}

void StreamOrder::collect() {
  const std::vector<traces::HostCall>& calls = draft_.trace->host_calls;
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    const bool acts = calls[i].kind == HostCallKind::kEventRecord ||
                      calls[i].kind == HostCallKind::kStreamWaitEvent;
    const bool named = calls[i].event != 0 && calls[i].stream < tails_.size();
    if (acts && named && draft_.holds(calls[i].start)) actions_.push_back(i);
  }
}

void StreamOrder::walk_pass() {
  for (std::uint32_t op = 0; op < draft_.ops.size(); ++op) {
    reach(draft_.calls[draft_.ops[op].call].start);
    launch(op);
  }
  reach(TraceTime::max());
  for (Befores& tail : tails_) {
    for (Before& before : tail) ++before.passes_back;
  }
  events_.clear();
  next_ = 0;
}

void StreamOrder::reach(TraceTime at) {
  const std::vector<traces::HostCall>& calls = draft_.trace->host_calls;
  while (next_ < actions_.size() && draft_.called(calls[actions_[next_]].start) < at) {
    act(calls[actions_[next_++]]);
  }
}

void StreamOrder::act(const traces::HostCall& call) {
  enter(call.stream);
  if (call.kind == HostCallKind::kEventRecord) {
    events_[call.event] = tails_[call.stream];
  } else if (const Befores* awaited = awaited_for(call.event)) {
    for (const Before& before : *awaited) keep_last(tails_[call.stream], before);
  }
  leave(call.stream);
}

const StreamOrder::Befores& StreamOrder::launch(std::uint32_t op) {
  const auto stream = static_cast<std::uint32_t>(draft_.stream_of(draft_.ops[op]));
  enter(stream);
  launched_.swap(tails_[stream]);
  tails_[stream].assign(1, {op, 0});
  leave(stream);
  return launched_;
}

StreamOrder::Befores StreamOrder::awaited_on(std::uint32_t stream) const {
  Befores all = tails_[stream];
  if (!has_default_stream()) return all;
  for (const std::uint32_t other : blocking_[stream]) {
    for (const Before& before : tails_[other]) keep_last(all, before);
  }
  return all;
}

const StreamOrder::Befores* StreamOrder::awaited_for(std::uint64_t event) const {
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : &found->second;
}

void StreamOrder::enter(std::uint32_t stream) {
  if (has_default_stream() && !blocking_[stream].empty()) tails_[stream] = awaited_on(stream);
}

void StreamOrder::leave(std::uint32_t stream) {
  if (!has_default_stream()) return;
  for (const std::uint32_t other : blocking_[stream]) tails_[other] = tails_[stream];
}

void StreamOrder::keep_last(Befores& befores, Before added) const {
  const auto same = std::ranges::find_if(
      befores, [&](Before before) { return stream_of(before) == stream_of(added); });
  if (same == befores.end()) befores.push_back(added);
  else if (is_later(added, *same)) *same = added;
}

std::size_t StreamOrder::stream_of(Before before) const {
  return draft_.stream_of(draft_.ops[before.op]);
}

}  // namespace bubblesim::workload

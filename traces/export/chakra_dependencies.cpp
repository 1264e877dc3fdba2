#include "traces/export/chakra_dependencies.hpp"

#include <algorithm>
#include <unordered_map>

namespace bubblesim::traces::chakra {
namespace {

bool waits(HostCallKind kind) {
  return kind == HostCallKind::kStreamSync || kind == HostCallKind::kDeviceSync ||
         kind == HostCallKind::kEventSync;
}

}  // namespace

DependencyFinder::DependencyFinder(const RankTrace& trace) : trace_(trace), edges_(trace.edges) {
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& a, const Edge& b) { return a.after < b.after; });
  find_stream_order();
  find_call_order();
  find_waits();
}

void DependencyFinder::find_stream_order() {
  std::vector<std::uint32_t> last(trace_.streams.size(), kNone);
  previous_op_.reserve(trace_.device_ops.size());
  for (std::uint32_t i = 0; i < trace_.device_ops.size(); ++i) {
    std::uint32_t& before = last[trace_.device_ops[i].stream.index()];
    previous_op_.push_back(before);
    before = i;
  }
}

void DependencyFinder::find_call_order() {
  std::vector<std::uint32_t> last(trace_.threads.size(), kNone);
  previous_call_.reserve(trace_.host_calls.size());
  for (std::uint32_t i = 0; i < trace_.host_calls.size(); ++i) {
    std::uint32_t& before = last[trace_.host_calls[i].thread.index()];
    previous_call_.push_back(before);
    before = i;
  }
}

// Walks calls in order of start with the last operation launched on each stream so far.
void DependencyFinder::find_waits() {
  std::vector<std::vector<std::uint32_t>> launched(trace_.host_calls.size());
  for (std::uint32_t i = 0; i < trace_.device_ops.size(); ++i) {
    const std::uint32_t launch = trace_.device_ops[i].launch;
    if (launch != kNone) launched[launch].push_back(i);
  }
  std::vector<std::uint32_t> last(trace_.streams.size(), kNone);
  std::unordered_map<std::uint64_t, std::uint32_t> recorded;  // by event: the operation before
  wait_index_.assign(trace_.host_calls.size(), kNone);
  for (std::uint32_t i = 0; i < trace_.host_calls.size(); ++i) {
    const HostCall& call = trace_.host_calls[i];
    for (const std::uint32_t op : launched[i]) last[trace_.device_ops[op].stream.index()] = op;
    const bool has_stream = call.stream < last.size();
    if (call.kind == HostCallKind::kEventRecord && has_stream && call.event != 0) {
      recorded[call.event] = last[call.stream];
    }
    if (!waits(call.kind)) continue;
    std::vector<std::uint32_t> ops;
    if (call.kind == HostCallKind::kDeviceSync) ops = last;
    if (call.kind == HostCallKind::kStreamSync && has_stream) ops = {last[call.stream]};
    if (call.kind == HostCallKind::kEventSync) {
      const auto found = recorded.find(call.event);
      if (found != recorded.end()) ops = {found->second};
    }
    // What ended after the call did was not waited for, whatever the names say.
    std::erase_if(ops, [&](std::uint32_t op) {
      return op == kNone || trace_.device_ops[op].end() > call.end();
    });
    if (ops.empty()) continue;
    wait_index_[i] = static_cast<std::uint32_t>(waits_.size());
    waits_.push_back(std::move(ops));
  }
}

Dependencies DependencyFinder::of_call(std::uint32_t call) const {
  Dependencies out;
  if (previous_call_[call] != kNone) out.calls.push_back(previous_call_[call]);
  if (wait_index_[call] != kNone) out.ops = waits_[wait_index_[call]];
  return out;
}

Dependencies DependencyFinder::of_op(std::uint32_t op) const {
  Dependencies out;
  if (trace_.device_ops[op].launch != kNone) out.calls.push_back(trace_.device_ops[op].launch);
  if (previous_op_[op] != kNone) out.ops.push_back(previous_op_[op]);
  const auto first = std::partition_point(edges_.begin(), edges_.end(), [op](const Edge& edge) {
    return edge.after.value < op;
  });
  for (auto edge = first; edge != edges_.end() && edge->after.value == op; ++edge) {
    if (edge->before.value == previous_op_[op]) continue;
    out.ops.push_back(edge->before.value);
    if (edge->inferred) out.inferred_ops.push_back(edge->before.value);
  }
  return out;
}

}  // namespace bubblesim::traces::chakra

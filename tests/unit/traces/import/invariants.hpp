// The invariants that every imported trace keeps, for any input. Returns the first broken one as
// text, or an empty string.
#pragma once

#include <set>
#include <string>

#include "traces/trace.hpp"

namespace bubblesim::traces {

inline std::string broken_promise_of_calls(const RankTrace& trace) {
  std::set<std::uint64_t> correlations;
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& call = trace.host_calls[i];
    if (i > 0 && call.start < trace.host_calls[i - 1].start) return "calls are not sorted";
    if (call.duration < Duration::zero()) return "a call lasts less than zero";
    if (call.thread.index() >= trace.threads.size()) return "a call has no thread";
    if (call.name.index() >= trace.names.size()) return "a call has no name";
    if (call.stream != kNone && call.stream >= trace.streams.size()) return "a call's stream";
    if (call.correlation != 0 && !correlations.insert(call.correlation).second) {
      return "two calls share a correlation";
    }
  }
  return {};
}

inline std::string broken_promise_of_ops(const RankTrace& trace) {
  for (std::size_t i = 0; i < trace.device_ops.size(); ++i) {
    const DeviceOp& op = trace.device_ops[i];
    if (i > 0 && op.start < trace.device_ops[i - 1].start) return "operations are not sorted";
    if (op.duration < Duration::zero()) return "an operation lasts less than zero";
    if (op.end() < op.start) return "an operation's end overflows";
    if (op.stream.index() >= trace.streams.size()) return "an operation has no stream";
    if (op.name.index() >= trace.names.size()) return "an operation has no name";
    const bool shaped = op.kind == DeviceOpKind::kKernel || op.kind == DeviceOpKind::kCollective;
    if (shaped && op.shape.index() >= trace.shapes.size()) return "a kernel has no shape";
    if ((op.kind == DeviceOpKind::kCollective) != (op.collective != kNone)) return "collective";
    if (op.collective != kNone && op.collective >= trace.collectives.size()) return "collective";
    if (op.launch == kNone) continue;
    if (op.launch >= trace.host_calls.size()) return "an operation's launch is out of range";
    if (op.correlation != trace.host_calls[op.launch].correlation) return "launch correlation";
  }
  return {};
}

inline std::string broken_promise(const RankTrace& trace) {
  if (trace.device_ops.empty()) return "no device operation";
  if (trace.rank >= trace.world_size) return "the rank is outside the world";
  if (std::string text = broken_promise_of_calls(trace); !text.empty()) return text;
  if (std::string text = broken_promise_of_ops(trace); !text.empty()) return text;
  for (const Edge& edge : trace.edges) {
    if (edge.before.index() >= trace.device_ops.size()) return "an edge's start";
    if (edge.after.index() >= trace.device_ops.size()) return "an edge's end";
  }
  for (const Marker& marker : trace.markers) {
    if (marker.thread.index() >= trace.threads.size()) return "a marker has no thread";
    if (marker.name.index() >= trace.names.size()) return "a marker has no name";
  }
  for (const Collective& collective : trace.collectives) {
    if (collective.group.index() >= trace.names.size()) return "a collective's group";
  }
  return {};
}

}  // namespace bubblesim::traces

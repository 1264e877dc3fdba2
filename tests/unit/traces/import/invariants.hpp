// The invariants that every imported trace keeps, for any input. Returns the first broken one as
// text, or an empty string.
#pragma once

#include <set>
#include <string>

#include "tests/unit/traces/format/valid_ids.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

inline std::string broken_promise_of_calls(const RankTrace& trace) {
  std::set<std::uint64_t> correlations;
  for (std::size_t i = 0; i < trace.host_calls.size(); ++i) {
    const HostCall& call = trace.host_calls[i];
    if (i > 0 && call.start < trace.host_calls[i - 1].start) return "calls are not sorted";
    if (call.duration < Duration::zero()) return "a call lasts less than zero";
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
    if ((op.kind == DeviceOpKind::kCollective) != (op.collective != kNone)) return "collective";
    if (op.launch == kNone) continue;
    if (op.correlation != trace.host_calls[op.launch].correlation) return "launch correlation";
  }
  return {};
}

inline std::string broken_promise(const RankTrace& trace) {
  if (trace.device_ops.empty()) return "no device operation";
  if (trace.rank >= trace.world_size) return "the rank is outside the world";
  if (!format::testing::ids_are_valid(trace)) return "an id points at no record";
  if (std::string text = broken_promise_of_calls(trace); !text.empty()) return text;
  return broken_promise_of_ops(trace);
}

}  // namespace bubblesim::traces

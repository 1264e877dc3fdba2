#include "sim/workload/event_records.hpp"

#include <algorithm>

namespace bubblesim::workload {

EventRecords::EventRecords(const Draft& draft) : launched_(draft.trace->streams.size()) {
  for (const traces::HostCall& call : draft.trace->host_calls) {
    const bool named = call.event != 0 && call.stream < launched_.size();
    if (call.kind != traces::HostCallKind::kEventRecord || !named) continue;
    if (!draft.holds(call.start)) continue;
    records_[call.event].push_back({draft.called(call.start), call.stream});
  }
  if (records_.empty()) return;
  for (std::uint32_t i = 0; i < draft.ops.size(); ++i) {
    const DraftOp& op = draft.ops[i];
    launched_[draft.stream_of(op)].push_back({draft.calls[op.call].start, i});
  }
}

const EventRecords::Record* EventRecords::last_before(std::uint64_t event, TraceTime wait) const {
  const auto found = records_.find(event);
  if (event == 0 || found == records_.end()) return nullptr;
  const auto after = std::lower_bound(
      found->second.begin(), found->second.end(), wait,
      [](const Record& record, TraceTime at) { return record.at < at; });
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

bool EventRecords::knows(std::uint64_t event, TraceTime wait) const {
  return last_before(event, wait) != nullptr;
}

std::uint32_t EventRecords::awaited(std::uint64_t event, TraceTime wait) const {
  const Record* record = last_before(event, wait);
  if (record == nullptr) return program::kNoIndex;
  const auto& launched = launched_[record->stream];
  const auto after = std::lower_bound(
      launched.begin(), launched.end(), record->at,
      [](const Launched& entry, TraceTime at) { return entry.at < at; });
  return after == launched.begin() ? program::kNoIndex : std::prev(after)->op;
}

}  // namespace bubblesim::workload

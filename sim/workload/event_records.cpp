#include "sim/workload/event_records.hpp"

#include <algorithm>

namespace bubblesim::workload {

EventRecords::EventRecords(const Draft& draft)
    : draft_(draft), launched_(draft.trace->streams.size()), held_(launched_.size()) {
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
  for (const traces::HostCall& call : draft.trace->host_calls) {
    if (call.kind != traces::HostCallKind::kStreamWaitEvent || !draft.holds(call.start)) continue;
    if (call.stream >= held_.size()) continue;
    const TraceTime at = draft.called(call.start);
    const std::uint32_t op = later(awaited(call.event, at), held_since(call.stream, at));
    if (op != program::kNoIndex) held_[call.stream].push_back({at, op});
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
  const Launched* last = last_of(launched_[record->stream], record->at);
  const std::uint32_t held = held_since(record->stream, record->at);
  return last == nullptr ? held : later(last->op, held);
}

const EventRecords::Launched* EventRecords::last_of(const std::vector<Launched>& entries,
                                                    TraceTime before) {
  const auto after = std::ranges::lower_bound(entries, before, {}, &Launched::at);
  return after == entries.begin() ? nullptr : &*std::prev(after);
}

// What the stream waits for without an operation of its own behind that.
std::uint32_t EventRecords::held_since(std::uint32_t stream, TraceTime at) const {
  const Launched* wait = last_of(held_[stream], at);
  if (wait == nullptr) return program::kNoIndex;
  const Launched* last = last_of(launched_[stream], at);
  return last != nullptr && last->at > wait->at ? program::kNoIndex : wait->op;
}

std::uint32_t EventRecords::later(std::uint32_t a, std::uint32_t b) const {
  if (a == program::kNoIndex || b == program::kNoIndex) return std::min(a, b);
  return draft_.ops[b].end > draft_.ops[a].end ? b : a;
}

}  // namespace bubblesim::workload

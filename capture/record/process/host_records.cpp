#include "capture/record/process/host_records.hpp"

#include <fstream>
#include <string>
#include <variant>

#include "capture/record/process/counters.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::capture {
namespace {

/// What the job called the thread; empty where it has ended already.
std::string name_of_thread(std::uint64_t system_id) {
  std::ifstream file("/proc/self/task/" + std::to_string(system_id) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

ThreadId HostRecords::thread(std::uint64_t system_id) {
  const ThreadId id = tables_.thread(system_id);
  if (threads_.insert(system_id).second) tables_.name_thread(id, name_of_thread(system_id));
  return id;
}

void HostRecords::add(const HostEvent& event, RecordedBatch& batch) {
  std::visit([&](const auto& held) { add(held, batch); }, event);
}

void HostRecords::add(const RangeEvent& event, RecordedBatch& batch) {
  if (event.start < since_) {
    counters_.add(kRangesBegunBefore);
    return;
  }
  const traces::MarkerClass what = traces::classify_marker(event.name);
  const std::string full = event.domain.empty() ? event.name : event.domain + ": " + event.name;
  batch.markers.push_back({event.start, event.duration, tables_.name(full), thread(event.thread),
                           what.kind, what.number});
  if (what.kind == traces::MarkerKind::kIteration && event.duration > Duration{}) ++iterations_;
}

void HostRecords::add(const CollectiveEvent& event, RecordedBatch& batch) {
  const auto index = static_cast<std::uint32_t>(batch.collectives.size());
  batch.collectives.push_back({event.kind, event.bytes, tables_.name(event.group),
                               event.group_size, event.peers, event.sequence,
                               event.sequence_recorded, event.place});
  batch.notes.push_back(
      {event.start, event.duration, thread(event.thread), event.source, index});
}

void HostRecords::add(const MarkEvent& event, RecordedBatch& batch) {
  const traces::MarkerClass what = traces::classify_marker(event.name);
  batch.markers.push_back(
      {event.at, Duration{}, tables_.name(event.name), thread(event.thread), what.kind,
       what.number});
}

}  // namespace bubblesim::capture

#include "sim/run/timeline_export.hpp"

#include <map>
#include <tuple>

namespace bubblesim::run {
namespace {

using observe::Slice;
using observe::SliceKind;
using observe::TimelineRecorder;
using traces::LaneShape;

/// Kinds that share a track; shown in this order.
enum class Group : std::uint8_t { kHost, kDevice, kRequests, kBubbles };

Group group_of(SliceKind kind) {
  switch (kind) {
    case SliceKind::kHold:
    case SliceKind::kPhase: return Group::kHost;
    case SliceKind::kRequest: return Group::kRequests;
    case SliceKind::kBubble: return Group::kBubbles;
    default: return Group::kDevice;
  }
}

const char* group_suffix(Group group) {
  switch (group) {
    case Group::kHost: return ": host";
    case Group::kDevice: return ": device";
    case Group::kRequests: return ": requests";
    case Group::kBubbles: return ": bubbles";
  }
  return "";
}

/// Client before group: a client's tracks stand together.
using TrackKey = std::tuple<GpuId, ClientId, Group>;

TrackKey key_of(const Slice& slice) { return {slice.gpu, slice.client, group_of(slice.kind)}; }

}  // namespace

traces::ChromeTrace timeline_to_chrome(const TimelineRecorder& timeline,
                                       const observe::TimelineWindow& window) {
  traces::ChromeTrace out;
  out.flow_name = "request";
  std::map<GpuId, std::uint32_t> processes;
  std::map<TrackKey, std::uint32_t> tracks;
  for (const Slice& slice : timeline.slices()) {
    if (!timeline.is_within(window, slice.start, slice.end)) continue;
    processes.emplace(slice.gpu, 0);
    tracks.emplace(key_of(slice), 0);
  }
  for (const auto& track : timeline.tracks()) processes.emplace(track.gpu, 0);
  for (auto& [gpu, index] : processes) {
    index = static_cast<std::uint32_t>(out.processes.size());
    out.processes.push_back(timeline.gpu_name(gpu));
  }
  for (auto& [key, index] : tracks) {
    const auto& [gpu, client, group] = key;
    index = static_cast<std::uint32_t>(out.tracks.size());
    out.tracks.push_back({processes[gpu], timeline.client_name(gpu, client) + group_suffix(group),
                          group == Group::kHost ? LaneShape::kNested : LaneShape::kFlat});
  }
  out.slices.reserve(timeline.slices().size());
  for (const Slice& slice : timeline.slices()) {
    if (!timeline.is_within(window, slice.start, slice.end)) continue;
    const bool joined = slice.request != observe::kNoRequest;
    out.slices.push_back({tracks[key_of(slice)], timeline.text(slice.name),
                          observe::slice_kind_name(slice.kind), to_ns(slice.start),
                          to_ns(slice.end - slice.start),
                          joined ? slice.request : traces::kNoFlow});
  }
  for (const auto& track : timeline.tracks()) {
    out.counters.push_back({processes[track.gpu], track.name, {}});
  }
  for (const auto& sample : timeline.samples()) {
    if (!timeline.is_within(window, sample.at, sample.at)) continue;
    out.counters[sample.track.index()].samples.push_back({to_ns(sample.at), sample.value});
  }
  for (const auto& [name, entry] : timeline.counters()) {
    out.notes.emplace_back(name, std::to_string(entry.count));
  }
  return out;
}

}  // namespace bubblesim::run

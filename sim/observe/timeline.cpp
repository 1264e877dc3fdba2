#include "sim/observe/timeline.hpp"

#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::observe {

const char* slice_kind_name(SliceKind kind) {
  switch (kind) {
    case SliceKind::kKernel: return "kernel";
    case SliceKind::kCollective: return "collective";
    case SliceKind::kCopy: return "copy";
    case SliceKind::kMemset: return "memset";
    case SliceKind::kPaused: return "paused";
    case SliceKind::kHold: return "hold";
    case SliceKind::kRequest: return "request";
    case SliceKind::kBubble: return "bubble";
    case SliceKind::kPhase: return "phase";
  }
  return "unknown";
}

NameId TimelineRecorder::intern(std::string_view text) {
  if (const auto found = name_ids_.find(text); found != name_ids_.end()) return found->second;
  const NameId id{static_cast<std::uint32_t>(names_.size())};
  names_.emplace_back(text);
  name_ids_.emplace(text, id);
  return id;
}

void TimelineRecorder::name_gpu(GpuId gpu, std::string name) {
  gpu_names_.insert_or_assign(gpu, std::move(name));
}

void TimelineRecorder::name_client(GpuId gpu, ClientId client, std::string name) {
  client_names_.insert_or_assign({gpu, client}, std::move(name));
}

TrackId TimelineRecorder::add_track(GpuId gpu, std::string name) {
  tracks_.push_back({gpu, std::move(name)});
  return TrackId{static_cast<std::uint32_t>(tracks_.size() - 1)};
}

void TimelineRecorder::add(const Slice& slice) {
  BUBBLESIM_DCHECK(slice.end >= slice.start, "slice ends before it starts");
  BUBBLESIM_DCHECK(slice.name.index() < names_.size(), "slice name was not interned");
  if (!is_within(window_, slice.start, slice.end)) return;
  if (slices_.size() >= limits_.slices) {
    is_cut_ = true;
    counters_.add(kTimelineSlicesDropped);
    return;
  }
  slices_.push_back(slice);
}

void TimelineRecorder::add(const CounterSample& sample) {
  BUBBLESIM_DCHECK(sample.track.index() < tracks_.size(), "sample of an unknown track");
  if (!is_within(window_, sample.at, sample.at)) return;
  if (samples_.size() >= limits_.samples) {
    is_cut_ = true;
    counters_.add(kTimelineSamplesDropped);
    return;
  }
  samples_.push_back(sample);
}

std::string TimelineRecorder::gpu_name(GpuId gpu) const {
  if (const auto found = gpu_names_.find(gpu); found != gpu_names_.end()) return found->second;
  return "GPU " + std::to_string(gpu.value);
}

std::string TimelineRecorder::client_name(GpuId gpu, ClientId client) const {
  const auto found = client_names_.find({gpu, client});
  if (found != client_names_.end()) return found->second;
  return "client " + std::to_string(client.value);
}

}  // namespace bubblesim::observe

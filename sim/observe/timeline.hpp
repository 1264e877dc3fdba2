// A record of a run for people to look at: slices, counters over time, and the path of each
// request, held in memory up to a limit. sim/run/timeline_export.hpp hands it to the Chrome trace
// writer.
//
// Recording never changes a result. Beyond a limit, records are dropped and counted. Threads must
// not share a timeline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::observe {

inline constexpr CounterSpec kTimelineSlicesDropped{
    "timeline_slices_dropped", Severity::kLoss,
    "slices beyond the timeline's limit; the exported timeline ends early, results are unaffected"};
inline constexpr CounterSpec kTimelineSamplesDropped{
    "timeline_samples_dropped", Severity::kLoss,
    "counter samples beyond the timeline's limit; results are unaffected"};

enum class SliceKind : std::uint8_t {
  kKernel, kCollective, kCopy, kMemset,  ///< device operations
  kPaused,   ///< a device operation that stands still: switched out, or driven off the GPU
  kHold,     ///< a launch that a policy holds
  kRequest,  ///< a request from its arrival to its completion
  kBubble,   ///< training idle
  kPhase,    ///< an iteration or another span of a host thread
};

/// "kernel", "collective", ...
[[nodiscard]] const char* slice_kind_name(SliceKind kind);

/// No request belongs to the slice.
inline constexpr std::uint64_t kNoRequest = std::numeric_limits<std::uint64_t>::max();

/// One span on one client of one GPU. Slices of one client may overlap.
struct Slice {
  GpuId gpu{};
  ClientId client{};
  NameId name{};  ///< from TimelineRecorder::intern
  SliceKind kind = SliceKind::kKernel;
  SimTime start{};
  SimTime end{};                      ///< >= start
  std::uint64_t request = kNoRequest; ///< arrows connect slices of one request
};

/// A value over time on one GPU.
struct CounterTrack {
  GpuId gpu{};
  std::string name;  ///< with its unit: "resident_sms", "queue_requests"
};
using TrackId = StrongId<struct TrackTag>;

struct CounterSample {
  TrackId track{};
  SimTime at{};
  double value = 0;
};

struct TimelineLimits {
  std::size_t slices = 1'000'000;   ///< 40 bytes each
  std::size_t samples = 1'000'000;  ///< 24 bytes each
};

/// A part of a recording, around the end of the warm-up.
struct TimelineWindow {
  Duration before = Duration::max();
  Duration after = Duration::max();
};

class TimelineRecorder {
 public:
  explicit TimelineRecorder(const TimelineLimits& limits = {}) : limits_(limits) {}

  /// Records only what lies in `window`; the rest is omitted without being counted as dropped.
  /// Default: everything.
  void set_window(const TimelineWindow& window) { window_ = window; }

  void widen_window(const TimelineWindow& window) {
    window_.before = std::max(window_.before, window.before);
    window_.after = std::max(window_.after, window.after);
  }

  /// The simulation says when its warm-up ends, before it adds anything. Default: kSimStart.
  void settle(SimTime at) { settled_ = at; }
  [[nodiscard]] SimTime settled() const { return settled_; }

  [[nodiscard]] bool is_within(const TimelineWindow& window, SimTime from, SimTime to) const {
    return settled_ - from <= window.before && to - settled_ <= window.after;
  }

  /// The id of a name; the same text gives the same id.
  [[nodiscard]] NameId intern(std::string_view text);
  void name_gpu(GpuId gpu, std::string name);
  void name_client(GpuId gpu, ClientId client, std::string name);
  [[nodiscard]] TrackId add_track(GpuId gpu, std::string name);

  /// Adds a span, in any order. Precondition: end >= start, `name` from intern().
  void add(const Slice& slice);
  void add(const CounterSample& sample);

  [[nodiscard]] const std::vector<Slice>& slices() const { return slices_; }
  [[nodiscard]] const std::vector<CounterSample>& samples() const { return samples_; }
  [[nodiscard]] const std::vector<CounterTrack>& tracks() const { return tracks_; }
  [[nodiscard]] const std::string& text(NameId name) const { return names_[name.index()]; }
  /// "GPU 3" or "client 1" if no name was given.
  [[nodiscard]] std::string gpu_name(GpuId gpu) const;
  [[nodiscard]] std::string client_name(GpuId gpu, ClientId client) const;
  /// Whether slices or samples were dropped, and how many.
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }

 private:
  TimelineLimits limits_;
  TimelineWindow window_;
  SimTime settled_ = kSimStart;
  std::vector<Slice> slices_;
  std::vector<CounterSample> samples_;
  std::vector<CounterTrack> tracks_;
  std::vector<std::string> names_;
  std::map<std::string, NameId, std::less<>> name_ids_;
  std::map<GpuId, std::string> gpu_names_;
  std::map<std::pair<GpuId, ClientId>, std::string> client_names_;
  bool is_cut_ = false;
  CounterSet counters_;
};

}  // namespace bubblesim::observe

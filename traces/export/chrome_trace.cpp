#include "traces/export/chrome_trace.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>
#include <queue>

#include "sim/base/number_text.hpp"
#include "sim/base/output_file.hpp"
#include "traces/export/json_text.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

template <class T>
using SmallestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// Trying nested lanes one by one is linear in their number, so that is bounded; what finds no
/// place in them goes to flat lanes behind them.
constexpr std::size_t kMaxNestedLanes = 16;

/// Lanes of one span at a time. Spans come in order of start.
class FlatLanes {
 public:
  std::uint32_t place(const LaneSpan& span) {
    while (!busy_.empty() && busy_.top().first <= span.start_ns) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    busy_.emplace(span.end_ns, lane);
    return lane;
  }

 private:
  SmallestFirst<std::pair<std::int64_t, std::uint32_t>> busy_;  ///< end, lane
  SmallestFirst<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

/// Lanes of spans inside spans: each keeps the ends of those that are open, innermost last.
class NestedLanes {
 public:
  std::uint32_t place(const LaneSpan& span) {
    for (std::size_t lane = 0; lane < open_.size(); ++lane) {
      std::vector<std::int64_t>& ends = open_[lane];
      while (!ends.empty() && ends.back() <= span.start_ns) ends.pop_back();
      if (!ends.empty() && ends.back() < span.end_ns) continue;
      ends.push_back(span.end_ns);
      return static_cast<std::uint32_t>(lane);
    }
    if (open_.size() < kMaxNestedLanes) {
      open_.push_back({span.end_ns});
      return static_cast<std::uint32_t>(open_.size() - 1);
    }
    return static_cast<std::uint32_t>(kMaxNestedLanes) + overflow_.place(span);
  }

 private:
  std::vector<std::vector<std::int64_t>> open_;
  FlatLanes overflow_;
};

template <class Lanes>
std::vector<std::uint32_t> assign(const std::vector<LaneSpan>& spans) {
  std::vector<std::uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (spans[a].start_ns != spans[b].start_ns) return spans[a].start_ns < spans[b].start_ns;
    return spans[a].end_ns > spans[b].end_ns;
  });
  Lanes lanes;
  std::vector<std::uint32_t> result(spans.size());
  for (const std::uint32_t index : order) result[index] = lanes.place(spans[index]);
  return result;
}

}  // namespace

std::vector<std::uint32_t> assign_lanes(const std::vector<LaneSpan>& spans, LaneShape shape) {
  return shape == LaneShape::kFlat ? assign<FlatLanes>(spans) : assign<NestedLanes>(spans);
}

namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

/// The list of events: commas, and a buffer between the text and the stream.
class EventList {
 public:
  explicit EventList(std::ostream& out) : out_(out) {}

  /// Begins an event: `{"ph":"X","pid":1`; the caller appends fields to text() and calls end().
  std::string& begin(char phase, std::uint32_t process) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    text_ += "{\"ph\":\"";
    text_ += phase;
    // Viewers take process and thread 0 for the idle task.
    text_ += "\",\"pid\":" + std::to_string(process + 1);
    return text_;
  }
  void end() {
    text_ += '}';
    if (text_.size() >= kFlushBytes) flush();
  }
  std::string& text() { return text_; }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

 private:
  std::ostream& out_;
  std::string text_;
  bool first_ = true;
};

/// Where a span is shown.
struct Placed {
  std::uint32_t slice = 0;
  std::uint32_t thread = 0;  ///< from 1 within its process
};

struct Layout {
  struct Thread {
    std::uint32_t track = 0;
    std::uint32_t lane = 0;
    std::uint32_t id = 0;
  };
  std::vector<Thread> threads;
  std::vector<Placed> slices;  ///< by track, then start, longer first
};

std::int64_t duration_of(const ChromeSlice& slice) {
  return std::max<std::int64_t>(slice.duration_ns, 0);
}

/// Not beyond the range of int64, whatever a trace says.
std::int64_t end_of(const ChromeSlice& slice) {
  const std::int64_t duration = duration_of(slice);
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  return slice.start_ns > kLast - duration ? kLast : slice.start_ns + duration;
}

bool shown_before(const ChromeSlice& a, const ChromeSlice& b) {
  if (a.track != b.track) return a.track < b.track;
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  return duration_of(a) > duration_of(b);
}

/// Lanes of one track, whose spans are [first, last) of layout.slices.
void lay_out_track(const ChromeTrace& trace, std::uint32_t track, std::size_t first,
                   std::size_t last, std::uint32_t& next_thread, Layout& layout) {
  std::vector<LaneSpan> spans;
  spans.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) {
    const ChromeSlice& slice = trace.slices[layout.slices[i].slice];
    spans.push_back({slice.start_ns, end_of(slice)});
  }
  const std::vector<std::uint32_t> lanes = assign_lanes(spans, trace.tracks[track].shape);
  std::uint32_t height = 1;
  for (std::size_t i = first; i < last; ++i) {
    layout.slices[i].thread = next_thread + lanes[i - first];
    height = std::max(height, lanes[i - first] + 1);
  }
  for (std::uint32_t lane = 0; lane < height; ++lane) {
    layout.threads.push_back({track, lane, next_thread + lane});
  }
  next_thread += height;
}

Layout lay_out(const ChromeTrace& trace) {
  Layout layout;
  layout.slices.resize(trace.slices.size());
  for (std::uint32_t i = 0; i < layout.slices.size(); ++i) layout.slices[i].slice = i;
  std::ranges::stable_sort(layout.slices, shown_before, [&](const Placed& placed) -> const auto& {
    return trace.slices[placed.slice];
  });
  std::vector<std::uint32_t> next_thread(trace.processes.size(), 1);
  std::size_t first = 0;
  for (std::uint32_t track = 0; track < trace.tracks.size(); ++track) {
    std::size_t last = first;
    while (last < layout.slices.size() && trace.slices[layout.slices[last].slice].track == track) {
      ++last;
    }
    lay_out_track(trace, track, first, last, next_thread[trace.tracks[track].process], layout);
    first = last;
  }
  return layout;
}

/// Name and place among its likes of a process, or of a thread (`thread` > 0).
void write_name(EventList& events, std::uint32_t process, std::uint32_t thread,
                std::string_view name) {
  const std::string of = (thread > 0 ? ",\"tid\":" + std::to_string(thread) : std::string()) +
                         ",\"name\":\"" + (thread > 0 ? "thread" : "process");
  std::string& text = events.begin('M', process);
  text += of + "_name\",\"args\":{\"name\":";
  append_json_string(text, name);
  text += '}';
  events.end();
  events.begin('M', process) += of + "_sort_index\",\"args\":{\"sort_index\":" +
                                std::to_string(thread > 0 ? thread : process) + '}';
  events.end();
}

void write_names(EventList& events, const ChromeTrace& trace, const Layout& layout) {
  for (std::uint32_t process = 0; process < trace.processes.size(); ++process) {
    write_name(events, process, 0, trace.processes[process]);
  }
  for (const Layout::Thread& thread : layout.threads) {
    const ChromeTrack& track = trace.tracks[thread.track];
    const std::string lane = thread.lane == 0 ? "" : " (" + std::to_string(thread.lane + 1) + ")";
    write_name(events, track.process, thread.id, track.name + lane);
  }
}

void write_slices(EventList& events, const ChromeTrace& trace, const Layout& layout) {
  for (const Placed& placed : layout.slices) {
    const ChromeSlice& slice = trace.slices[placed.slice];
    std::string& text = events.begin('X', trace.tracks[slice.track].process);
    text += ",\"tid\":" + std::to_string(placed.thread) + ",\"ts\":";
    append_microseconds(text, slice.start_ns);
    text += ",\"dur\":";
    append_microseconds(text, duration_of(slice));
    text += ",\"name\":";
    append_json_string(text, slice.name);
    text += ",\"cat\":";
    append_json_string(text, slice.category);
    if (slice.flow != kNoFlow) {
      text += ",\"args\":{";
      append_json_string(text, trace.flow_name);
      text += ':' + std::to_string(slice.flow) + '}';
    }
    events.end();
  }
}

/// `phase`: s begins, t goes on, f ends the arrows of a flow. Each binds to the span around it.
void write_arrow(EventList& events, const ChromeTrace& trace, const Placed& placed, char phase) {
  const ChromeSlice& slice = trace.slices[placed.slice];
  std::string& text = events.begin(phase, trace.tracks[slice.track].process);
  text += ",\"tid\":" + std::to_string(placed.thread) + ",\"ts\":";
  append_microseconds(text, slice.start_ns);
  text += ",\"id\":" + std::to_string(slice.flow) + ",\"name\":";
  append_json_string(text, trace.flow_name);
  text += ",\"cat\":";
  append_json_string(text, trace.flow_name);
  if (phase != 's') text += ",\"bp\":\"e\"";
  events.end();
}

/// Arrows between the spans of each flow. Returns how many: one fewer than its spans.
std::uint64_t write_flows(EventList& events, const ChromeTrace& trace, const Layout& layout) {
  std::vector<Placed> members;
  for (const Placed& placed : layout.slices) {
    if (trace.slices[placed.slice].flow != kNoFlow) members.push_back(placed);
  }
  std::stable_sort(members.begin(), members.end(), [&](const Placed& a, const Placed& b) {
    const ChromeSlice& left = trace.slices[a.slice];
    const ChromeSlice& right = trace.slices[b.slice];
    if (left.flow != right.flow) return left.flow < right.flow;
    return left.start_ns < right.start_ns;
  });
  const auto flow_at = [&](std::size_t i) { return trace.slices[members[i].slice].flow; };
  std::uint64_t arrows = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool from_before = i > 0 && flow_at(i - 1) == flow_at(i);
    const bool goes_on = i + 1 < members.size() && flow_at(i + 1) == flow_at(i);
    if (!from_before && !goes_on) continue;
    write_arrow(events, trace, members[i], !from_before ? 's' : goes_on ? 't' : 'f');
    if (from_before) ++arrows;
  }
  return arrows;
}

void write_counters(EventList& events, const ChromeTrace& trace, ChromeStats& stats) {
  for (const ChromeCounter& counter : trace.counters) {
    for (const ChromeSample& sample : counter.samples) {
      if (!std::isfinite(sample.value)) {
        ++stats.dropped_samples;
        continue;
      }
      std::string& text = events.begin('C', counter.process);
      text += ",\"ts\":";
      append_microseconds(text, sample.at_ns);
      text += ",\"name\":";
      append_json_string(text, counter.name);
      text += ",\"args\":{\"value\":";
      text += shortest_text(sample.value);
      text += '}';
      events.end();
      ++stats.samples;
    }
  }
}

// Before the events: a file that was cut still says what it is.
void write_notes(std::string& text, const ChromeTrace& trace) {
  text += "\n\"otherData\":{";
  append_json_string(text, kTimelineMarkKey);
  text += ':';
  append_json_string(text, kTimelineMark);
  for (const auto& [name, value] : trace.notes) {
    text += ',';
    append_json_string(text, name);
    text += ':';
    append_json_string(text, value);
  }
  text += "},\n";
}

}  // namespace

ChromeStats write_chrome_trace(std::ostream& out, const ChromeTrace& trace) {
  const Layout layout = lay_out(trace);
  ChromeStats stats;
  stats.slices = layout.slices.size();
  stats.threads = layout.threads.size();
  for (const ChromeSlice& slice : trace.slices) {
    if (slice.duration_ns < 0) ++stats.clamped_slices;
  }
  EventList events(out);
  events.text() += "{\"displayTimeUnit\":\"ns\",";
  write_notes(events.text(), trace);
  events.text() += "\"traceEvents\":[";
  write_names(events, trace, layout);
  write_slices(events, trace, layout);
  stats.arrows = write_flows(events, trace, layout);
  write_counters(events, trace, stats);
  events.text() += "\n]}\n";
  events.flush();
  return stats;
}

Result<ChromeStats> write_chrome_trace_file(const std::string& path, const ChromeTrace& trace) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  const ChromeStats stats = write_chrome_trace(file.stream(), trace);
  BUBBLESIM_RETURN_IF_ERROR(file.finish());
  return stats;
}

}  // namespace bubblesim::traces

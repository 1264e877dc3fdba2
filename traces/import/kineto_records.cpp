#include "traces/import/kineto_records.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "sim/base/utf8.hpp"
#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_reader.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/meeting_key.hpp"
#include "traces/names/collective_names.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::traces {
namespace {

/// Names of categories that are kept for the fault message of a file that is not Kineto's.
constexpr std::size_t kMostForeignNames = 64;

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

/// The digits of "4093687616", 4093687616 or "stream 7".
std::uint64_t number_in(std::string_view text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(text.data() + first, text.data() + text.size(), number);
  return number;
}

std::optional<std::uint64_t> stream_of(const RawEvent& event, const DeviceOpArgs& args) {
  if (args.stream) return args.stream;
  if (event.tid.text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (event.tid.text.starts_with('-')) return std::nullopt;
  return number_in(event.tid.text);
}

DeviceOpKind op_kind(KinetoCategory category) {
  if (category == KinetoCategory::kCopy) return DeviceOpKind::kCopy;
  return category == KinetoCategory::kMemset ? DeviceOpKind::kMemset : DeviceOpKind::kKernel;
}

std::uint32_t fit32(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kNone - 1));
}

SyncRow::Kind sync_kind(std::string_view text) {
  if (text == "Stream Wait Event") return SyncRow::Kind::kStreamWait;
  if (text == "Event Sync") return SyncRow::Kind::kEvent;
  return text == "Stream Sync" ? SyncRow::Kind::kStream : SyncRow::Kind::kOther;
}

/// The collective of a kernel named `kernel_name` that carries `args`.
PendingCollective make_collective(const DeviceOpArgs& args, std::string_view kernel_name,
                                  RankTrace& trace) {
  PendingCollective out;
  Collective& record = out.record;
  out.recorded = !args.collective.empty();
  record.kind = kind_of_collective(args.collective);
  if (record.kind == CollectiveKind::kUnknown) record.kind = kind_of_kernel(kernel_name);
  if (args.elements_in) {
    const auto size = dtype_bytes(args.dtype);
    if (!size) trace.counters.add(kineto::kUnknownDtype);
    // Counts beyond 2^56 elements are damage; 0 says "not recorded".
    if (*args.elements_in < std::uint64_t{1} << 56U) {
      record.bytes = *args.elements_in * size.value_or(0);
    }
  }
  record.group = trace.names.intern(unescape(args.group));
  record.group_size = fit32(args.group_size.value_or(0));
  if (!args.group_ranks.empty()) {
    const auto peers = parse_rank_list(args.group_ranks);
    out.ranks_cut = !peers;
    if (peers) record.peers = *peers;
  }
  record.sequence_recorded = args.sequence.has_value();
  record.sequence = args.sequence.value_or(0);
  if (is_one_end(record.kind)) {
    const auto& partner = record.kind == CollectiveKind::kSend ? args.to : args.from;
    out.ends.push_back({record.kind, {}, {}, {}});
    if (partner) out.ends[0].partner_rank = fit32(*partner);
  }
  return out;
}

}  // namespace

KinetoRecorder::KinetoRecorder() {
  // Id 0 is the empty name, so that a default NameId says "not recorded".
  records_.trace.names.intern("");
}

void KinetoRecorder::add(const RawEvent& event, EventStatus status) {
  ++records_.count(event.category);
  if (status == EventStatus::kSkipped) return add_skipped(event);
  if (event.repeats) records_.trace.counters.add(kineto::kRepeatedKeys);
  if (event.phase == 'M') return add_thread_name(event);
  if (event.phase == 'i' || event.phase == 'I') return add_memory(event);
  if (event.phase != 'X') return add_other_phase(event);
  switch (event.category) {
    case KinetoCategory::kKernel:
    case KinetoCategory::kCopy:
    case KinetoCategory::kMemset: return add_device_op(event);
    case KinetoCategory::kHostCall: return add_host_call(event);
    case KinetoCategory::kSync: return add_sync(event);
    case KinetoCategory::kUserAnnotation:
    case KinetoCategory::kCpuOp: return add_marker(event);
    case KinetoCategory::kOverhead: return add_stall(event);
    case KinetoCategory::kMissing: return count_without_category(event);
    default: return;
  }
}

/// A stream and a correlation say that the device ran it, but not whether it is a kernel.
void KinetoRecorder::count_without_category(const RawEvent& event) {
  const DeviceOpArgs args = device_op_args(event);
  const bool on_device = args.stream && args.correlation != 0;
  records_.trace.counters.add(on_device ? kineto::kOpsWithoutCategory : kineto::kForeignEvents);
}

/// Kineto writes spans as one event; other programs write "B" and "E", or "b" and "e".
void KinetoRecorder::add_other_phase(const RawEvent& event) {
  switch (event.category) {
    case KinetoCategory::kKernel:
    case KinetoCategory::kCopy:
    case KinetoCategory::kMemset:
    case KinetoCategory::kHostCall:
    case KinetoCategory::kSync:
    case KinetoCategory::kUserAnnotation: return records_.trace.counters.add(kineto::kOtherPhase);
    default: return;
  }
}

void KinetoRecorder::add_skipped(const RawEvent& event) {
  if (event.category != KinetoCategory::kForeign) return;
  const auto found = records_.foreign_categories.find(event.category_text);
  if (found != records_.foreign_categories.end()) {
    ++found->second;
  } else if (records_.foreign_categories.size() < kMostForeignNames) {
    records_.foreign_categories.emplace(event.category_text.substr(0, 40), 1);
  }
}

bool KinetoRecorder::read_instant(const JsonValue& value, TraceTime& at) {
  const auto ns = microseconds_to_ns(value.text);
  if (!ns) {
    records_.trace.counters.add(kineto::kNoTime);
    return false;
  }
  if (ns->rounded) records_.trace.counters.add(kineto::kRounded);
  records_.any_fraction |= ns->has_fraction;
  at = TraceTime{Duration{ns->value}};
  return true;
}

bool KinetoRecorder::read_span(const RawEvent& event, Span& span) {
  if (!read_instant(event.ts, span.start)) return false;
  TraceTime length{};
  if (!read_instant(event.dur, length)) return false;
  span.duration = length.time_since_epoch();
  if (span.duration < Duration::zero()) {
    span.duration = Duration::zero();
    records_.trace.counters.add(kineto::kNegativeDuration);
  }
  return true;
}

void KinetoRecorder::add_device_op(const RawEvent& event) {
  CounterSet& counters = records_.trace.counters;
  Span span;
  if (!read_span(event, span)) return;
  if (span.start == TraceTime{} && span.duration == Duration::zero()) {
    return counters.add(kineto::kZeroTime);
  }
  const DeviceOpArgs args = device_op_args(event);
  const auto system_stream = stream_of(event, args);
  if (!system_stream) return counters.add(kineto::kNoStream);
  PendingOp op;
  op.graph_node = args.graph_node;
  op.start = span.start;
  op.duration = span.duration;
  op.correlation = args.correlation;
  op.name = intern(event.name);
  op.stream = stream(fit32(args.device.value_or(number_in(event.pid.text))), *system_stream,
                     args.priority);
  op.kind = op_kind(event.category);
  op.bytes = args.bytes;
  if (op.kind == DeviceOpKind::kCopy) {
    op.direction = args.copy == CopyDirection::kNone ? copy_direction(event.name) : args.copy;
  }
  if (op.kind == DeviceOpKind::kKernel) {
    op.shape = records_.trace.shapes.intern(args.shape.value_or(kUnknownShape));
    if (is_communication(op.name)) {
      op.kind = DeviceOpKind::kCollective;
      op.collective = static_cast<std::uint32_t>(records_.collectives.size());
      records_.collectives.push_back(make_collective(args, event.name, records_.trace));
    }
  }
  records_.ops.push_back(op);
}

template <class Take>
void KinetoRecorder::each_argument(const RawEvent& event, Take take) {
  if (each_field(event.args.text, take, event.rule).repeats()) {
    records_.trace.counters.add(kineto::kRepeatedKeys);
  }
}

DeviceOpArgs KinetoRecorder::device_op_args(const RawEvent& event) {
  const DeviceOpArgs args = read_device_op_args(event.args.text, event.rule);
  if (args.repeats) records_.trace.counters.add(kineto::kRepeatedKeys);
  return args;
}

void KinetoRecorder::add_host_call(const RawEvent& event) {
  Span span;
  if (!read_span(event, span)) return;
  PendingCall call;
  call.start = span.start;
  call.duration = span.duration;
  call.name = intern(event.name);
  call.kind = call_kind(call.name);
  call.thread = thread(event.pid, event.tid);
  LaunchId id;
  ShapeFields shape;
  each_argument(event, [&](std::string_view key, const JsonValue& value) {
    if (!id.take(key, value) && !shape.take(key, value) && key == "stream") {
      call.stream_pointer = to_unsigned(value);
    }
  });
  call.correlation = id.value();
  if (const auto launch = shape.shape()) call.shape = records_.trace.shapes.intern(*launch);
  records_.calls.push_back(call);
}

void KinetoRecorder::add_sync(const RawEvent& event) {
  SyncRow row;
  if (!read_instant(event.ts, row.at)) return;
  each_argument(event, [&](std::string_view key, const JsonValue& value) {
    if (key == "cuda_sync_kind") row.kind = sync_kind(value.text);
    else if (key == "device") row.device = fit32(to_unsigned(value).value_or(0));
    else if (key == "correlation") row.correlation = to_unsigned(value).value_or(0);
    else if (key == "stream") row.stream = to_signed(value).value_or(-1);
    else if (key == "wait_on_stream") row.waits_for_stream = to_signed(value).value_or(-1);
    else if (key == "wait_on_cuda_event_id") row.event = to_signed(value).value_or(-1);
    else if (key == "wait_on_cuda_event_record_corr_id") {
      row.record_correlation = to_signed(value).value_or(-1);
    }
  });
  records_.syncs.push_back(row);
}

void KinetoRecorder::add_marker(const RawEvent& event) {
  if (event.name == kCommunicationOperator) return add_announced(event);
  const bool step = is_profiler_step(event.name);
  if (event.category == KinetoCategory::kCpuOp && !step) return;
  Span span;
  if (!read_span(event, span)) return;
  Marker marker;
  marker.start = span.start;
  marker.duration = span.duration;
  marker.name = intern(event.name);
  marker.thread = thread(event.pid, event.tid);
  const MarkerClass known = classify_marker(event.name);
  marker.kind = step ? MarkerKind::kIteration : known.kind;
  marker.number = known.number;
  records_.trace.markers.push_back(marker);
}

// "Rank" is the other end's place in the group; kernels do not carry it.
void KinetoRecorder::add_announced(const RawEvent& event) {
  const DeviceOpArgs args = device_op_args(event);
  Span span;
  if (!is_one_end(kind_of_collective(args.collective)) || !read_span(event, span)) return;
  AnnouncedTransfer entry{span.start, span.duration, thread(event.pid, event.tid),
                          make_collective(args, "", records_.trace)};
  if (args.rank) entry.what.ends[0].partner = fit32(*args.rank);
  records_.announced.push_back(std::move(entry));
}

// The row is of no process and no thread (pid -1, tid 0): which one was held, its time tells.
void KinetoRecorder::add_stall(const RawEvent& event) {
  Span span;
  if (event.name != kQueueFullEvent || !read_span(event, span)) return;
  records_.trace.stalls.push_back({span.start, span.duration, {}, StallKind::kQueueFull});
}

void KinetoRecorder::add_memory(const RawEvent& event) {
  CounterSet& counters = records_.trace.counters;
  if (event.name != "[memory]") return add_other_phase(event);
  std::optional<std::uint64_t> allocated;
  std::optional<std::uint64_t> reserved;
  std::int64_t device_type = 0;
  each_argument(event, [&](std::string_view key, const JsonValue& value) {
    if (key == "Total Allocated") allocated = to_unsigned(value);
    else if (key == "Total Reserved") reserved = to_unsigned(value);
    else if (key == "Device Type") device_type = to_signed(value).value_or(0);
  });
  // Device type 0 is the host's memory.
  if (!allocated || !reserved || device_type == 0) return counters.add(kineto::kMemorySkipped);
  TraceTime at{};
  if (!read_instant(event.ts, at)) return;
  records_.trace.memory.push_back({at, *allocated, *reserved});
}

void KinetoRecorder::add_thread_name(const RawEvent& event) {
  if (event.name != "thread_name") return;
  each_argument(event, [&](std::string_view key, const JsonValue& value) {
    if (key != "name") return;
    std::string id(event.pid.text);
    id += '\n';
    id += event.tid.text;
    // A thread that was renamed has several; which came last, the file does not say.
    std::string& name = records_.thread_names[std::move(id)];
    name = std::max(name, repaired_utf8(unescape(value.text)));
  });
}

NameId KinetoRecorder::intern(std::string_view raw_name) {
  StringTable& names = records_.trace.names;
  const std::size_t before = names.size();
  const bool escaped = raw_name.find('\\') != std::string_view::npos;
  const std::string unescaped = escaped ? unescape(raw_name) : std::string();
  const std::string_view name = escaped ? unescaped : raw_name;
  const bool good = is_utf8(name);
  const NameId id = good ? names.intern(name) : names.intern(repaired_utf8(name));
  if (names.size() > before && !good) records_.trace.counters.add(kineto::kInvalidUtf8);
  if (names.size() > before && has_control(raw_name)) {
    records_.trace.counters.add(kineto::kRawControls);
  }
  return id;
}

HostCallKind KinetoRecorder::call_kind(NameId name) {
  if (kind_by_name_.size() <= name.index()) kind_by_name_.resize(name.index() + 1, -1);
  std::int8_t& kind = kind_by_name_[name.index()];
  if (kind < 0) {
    kind = static_cast<std::int8_t>(classify_host_call(records_.trace.names[name]));
  }
  return static_cast<HostCallKind>(kind);
}

bool KinetoRecorder::is_communication(NameId name) {
  if (comm_by_name_.size() <= name.index()) comm_by_name_.resize(name.index() + 1, -1);
  std::int8_t& known = comm_by_name_[name.index()];
  if (known < 0) known = is_communication_kernel(records_.trace.names[name]) ? 1 : 0;
  return known == 1;
}

ThreadId KinetoRecorder::thread(const JsonValue& pid, const JsonValue& tid) {
  thread_key_.assign(pid.text);
  thread_key_ += '\n';
  thread_key_ += tid.text;
  if (thread_key_ == last_thread_key_) return last_thread_;
  std::vector<HostThread>& threads = records_.trace.threads;
  const ThreadId fresh{static_cast<std::uint32_t>(threads.size())};
  const auto [place, is_new] = records_.thread_ids.try_emplace(thread_key_, fresh);
  if (is_new) threads.push_back({number_in(tid.text), {}});
  last_thread_key_ = thread_key_;
  last_thread_ = place->second;
  return last_thread_;
}

StreamId KinetoRecorder::stream(std::uint32_t device, std::uint64_t system_id,
                                std::int32_t priority) {
  std::vector<Stream>& streams = records_.trace.streams;
  const auto fresh = static_cast<std::uint32_t>(streams.size());
  const auto [place, is_new] = records_.stream_ids.try_emplace({device, system_id}, fresh);
  if (is_new) streams.push_back({system_id, priority, device});
  // Rows of one stream agree on its priority, or lack it (0): the most urgent counts.
  std::int32_t& known = streams[place->second].priority;
  if (priority != 0) known = known == 0 ? priority : std::min(known, priority);
  return StreamId{place->second};
}

namespace {

struct NamedCategory {
  std::string_view name;  ///< lower case
  KinetoCategory category;
};

/// Most frequent first. Sources: ActivityType of libkineto, and files of 2020 to 2026.
constexpr std::array kCategories{
    NamedCategory{"python_function", KinetoCategory::kPythonFunction},
    NamedCategory{"cpu_op", KinetoCategory::kCpuOp},
    NamedCategory{"ac2g", KinetoCategory::kFlow},
    NamedCategory{"cuda_runtime", KinetoCategory::kHostCall},
    NamedCategory{"kernel", KinetoCategory::kKernel},
    NamedCategory{"fwdbwd", KinetoCategory::kFlow},
    NamedCategory{"cpu_instant_event", KinetoCategory::kInstant},
    NamedCategory{"cuda_driver", KinetoCategory::kHostCall},
    NamedCategory{"user_annotation", KinetoCategory::kUserAnnotation},
    NamedCategory{"gpu_memcpy", KinetoCategory::kCopy},
    NamedCategory{"gpu_memset", KinetoCategory::kMemset},
    NamedCategory{"cuda_sync", KinetoCategory::kSync},
    NamedCategory{"gpu_user_annotation", KinetoCategory::kGpuAnnotation},
    NamedCategory{"runtime", KinetoCategory::kHostCall},
    NamedCategory{"driver", KinetoCategory::kHostCall},
    NamedCategory{"hip_runtime", KinetoCategory::kHostCall},
    NamedCategory{"hip_driver", KinetoCategory::kHostCall},
    NamedCategory{"concurrent_kernel", KinetoCategory::kKernel},
    NamedCategory{"memcpy", KinetoCategory::kCopy},
    NamedCategory{"memset", KinetoCategory::kMemset},
    NamedCategory{"operator", KinetoCategory::kCpuOp},
    NamedCategory{"async_cpu_to_gpu", KinetoCategory::kFlow},
    NamedCategory{"async_gpu", KinetoCategory::kFlow},
    NamedCategory{"async", KinetoCategory::kFlow},
    NamedCategory{"forward_backward", KinetoCategory::kFlow},
    NamedCategory{"trace", KinetoCategory::kTraceSpan},
    NamedCategory{"overhead", KinetoCategory::kOverhead},
    NamedCategory{"cuda_event", KinetoCategory::kProfilerInternal},
    NamedCategory{"cuda_profiler_range", KinetoCategory::kProfilerInternal},
    NamedCategory{"collective_comm", KinetoCategory::kProfilerInternal},
    NamedCategory{"external_correlation", KinetoCategory::kProfilerInternal},
    NamedCategory{"python", KinetoCategory::kPythonFunction},
};

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

KinetoCategory kineto_category(std::string_view text) {
  const auto exact = std::ranges::find(kCategories, text, &NamedCategory::name);
  if (exact != kCategories.end()) return exact->category;
  for (const NamedCategory& entry : kCategories) {
    if (equal_ignoring_case(text, entry.name)) return entry.category;
  }
  return KinetoCategory::kForeign;
}

/// Categories of which nothing but the count is kept.
bool is_skipped(KinetoCategory category) {
  switch (category) {
    case KinetoCategory::kPythonFunction:
    case KinetoCategory::kFlow:
    case KinetoCategory::kGpuAnnotation:
    case KinetoCategory::kTraceSpan:
    case KinetoCategory::kProfilerInternal:
    case KinetoCategory::kForeign: return true;
    default: return false;
  }
}

void store(std::string_view key, const JsonValue& value, RawEvent& event) {
  if (key == "ph") {
    event.phase = value.text.empty() ? '\0' : value.text.front();
    // Flow arrows have their category late; the phase alone says that they are not needed.
    if (event.phase == 's' || event.phase == 'f') event.category = KinetoCategory::kFlow;
  } else if (key == "cat") {
    event.category_text = value.text;
    event.category = kineto_category(value.text);
  } else if (key == "name") {
    event.name = value.text;
  } else if (key == "pid") {
    event.pid = value;
  } else if (key == "tid") {
    event.tid = value;
  } else if (key == "ts") {
    event.ts = value;
  } else if (key == "dur") {
    event.dur = value;
  } else if (key == "args") {
    event.args = value;
  }
}

/// Enough is known to leave the rest unread.
bool decided(const RawEvent& event) {
  if (event.phase == 0 || event.category == KinetoCategory::kMissing) return false;
  if (is_skipped(event.category)) return true;
  if (event.name.empty()) return false;
  if (event.category == KinetoCategory::kOverhead) return event.name != kQueueFullEvent;
  return event.category == KinetoCategory::kCpuOp && !is_profiler_step(event.name) &&
         event.name != kCommunicationOperator;
}

}  // namespace

EventRead read_event(std::string_view text, StringRule rule, RawEvent& event) {
  event = {};
  event.rule = rule;
  FieldReader fields(text, rule);
  std::string_view key;
  JsonValue value;
  while (fields.next(key, value)) {
    store(key, value, event);
    if (rule == StringRule::kStrict && decided(event)) return {EventStatus::kSkipped, 0};
  }
  event.repeats = fields.repeats();
  if (!fields.complete()) return {EventStatus::kDamaged, fields.consumed()};
  const bool skipped = is_skipped(event.category) || decided(event);
  return {skipped ? EventStatus::kSkipped : EventStatus::kUsed, fields.consumed()};
}

}  // namespace bubblesim::traces

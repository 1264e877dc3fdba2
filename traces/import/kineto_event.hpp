// One element of `traceEvents` as it stands in the file: field views, nothing interpreted but the
// category. Valid only while the window's text is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/import/json_fields.hpp"

namespace bubblesim::traces {

/// What the importer does with an event's category, whatever its spelling was in that version.
enum class KinetoCategory : std::uint8_t {
  kMissing,          ///< no "cat": metadata, old instant events
  kKernel,
  kCopy,
  kMemset,
  kHostCall,         ///< runtime or driver
  kSync,             ///< synthetic rows of stream waits and synchronisations
  kUserAnnotation,
  kInstant,          ///< cpu_instant_event: memory samples
  kCpuOp,
  kPythonFunction,
  kFlow,             ///< ac2g, async_cpu_to_gpu, async_gpu, fwdbwd
  kGpuAnnotation,    ///< gpu_user_annotation: the host's range drawn on a stream
  kTraceSpan,        ///< "Trace": the profiler's own span
  kOverhead,         ///< what held a thread; all but a full launch queue are the profiler's own
  kProfilerInternal, ///< cuda_event and other rows that replay does not need
  kForeign,          ///< none of Kineto's
};

/// The event of category overhead that is a stall of the host's.
inline constexpr std::string_view kQueueFullEvent = "Command Buffer Full";

/// The operator that describes a collective, around its launch; of a batch of sends and receives,
/// before it. Kernels carry what it says only where it is around their launch.
inline constexpr std::string_view kCommunicationOperator = "record_param_comms";

[[nodiscard]] KinetoCategory kineto_category(std::string_view text);

struct RawEvent {
  char phase = 0;  ///< 'X', 'i', 'M', ...; 0: missing
  KinetoCategory category = KinetoCategory::kMissing;
  std::string_view category_text;
  std::string_view name;  ///< escapes still in it
  JsonValue pid, tid, ts, dur, args;
  bool repeats = false;  ///< a key stands twice; those of args are not looked at
  StringRule rule = StringRule::kStrict;  ///< by which it was read, and args are to be
};

enum class EventStatus {
  kUsed,     ///< all fields are read
  kSkipped,  ///< read as far as was needed to see that it is not stored
  kDamaged,
};

struct EventRead {
  EventStatus status = EventStatus::kDamaged;
  std::size_t length = 0;  ///< of the object; with kSkipped not known
};

/// Reads the event that starts at `text[0]`.
[[nodiscard]] EventRead read_event(std::string_view text, StringRule rule, RawEvent& event);

}  // namespace bubblesim::traces

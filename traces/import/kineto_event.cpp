#include "traces/import/kineto_event.hpp"

#include <array>
#include <cctype>

namespace bubblesim::traces {
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
  return event.category == KinetoCategory::kCpuOp && !event.name.starts_with("ProfilerStep") &&
         event.name != kCommunicationOperator;
}

}  // namespace

KinetoCategory kineto_category(std::string_view text) {
  for (const NamedCategory& entry : kCategories) {
    if (text == entry.name) return entry.category;
  }
  for (const NamedCategory& entry : kCategories) {
    if (equal_ignoring_case(text, entry.name)) return entry.category;
  }
  return KinetoCategory::kForeign;
}

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

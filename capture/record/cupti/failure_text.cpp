#include "capture/record/cupti/failure_text.hpp"

#include <fmt/format.h>

namespace bubblesim::capture {
namespace {

std::string held_text(std::string_view holder) {
  if (holder.empty()) {
    return "another profiler (Nsight Systems, torch.profiler, a debugger) has CUPTI in this "
           "process; it was left alone";
  }
  return fmt::format("{} has CUPTI in this process; it was left alone", holder);
}

/// Empty: CUPTI's own word says it all.
std::string advice(cupti::Result result, std::string_view holder) {
  switch (result) {
    case cupti::Result::kMultipleSubscribers:
      return held_text(holder);
    case cupti::Result::kInsufficientPrivileges:
    case cupti::Result::kVirtualizedDevicePrivileges:
      return "the driver does not allow this user to profile; its administrator can "
             "(NVreg_RestrictProfilingToAdminUsers=0)";
    case cupti::Result::kVirtualizedDevice:
      return "this virtual GPU does not support profiling";
    case cupti::Result::kNotInitialized:
    case cupti::Result::kUnknown:
      return "CUPTI could not start; is there a driver, and does it know this CUPTI?";
    default:
      return {};
  }
}

}  // namespace

std::string failure_text(const CuptiApi& api, cupti::Result result, std::string_view holder) {
  const char* name = nullptr;
  if (api.get_result_string != nullptr) api.get_result_string(result, &name);
  const std::string word = fmt::format("{} ({})", name != nullptr ? name : "failed",
                                       static_cast<std::uint32_t>(result));
  const std::string more = advice(result, holder);
  return more.empty() ? word : word + ": " + more;
}

bool is_refusal(cupti::Result result) {
  switch (result) {
    case cupti::Result::kInvalidParameter:
    case cupti::Result::kInvalidOperation:
    case cupti::Result::kNotImplemented:
    case cupti::Result::kNotCompatible:
    case cupti::Result::kInvalidKind:
    case cupti::Result::kNotSupported:
      return true;
    default:
      return false;
  }
}

}  // namespace bubblesim::capture

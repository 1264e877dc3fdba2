#include "traces/names/host_call_names.hpp"

#include <array>

namespace bubblesim::traces {
namespace {

struct NamedKind {
  std::string_view name;  ///< without cuda, cu or hip
  HostCallKind kind;
};

/// Whole names, after prefix and suffix are gone.
constexpr std::array kExact{
    NamedKind{"GraphLaunch", HostCallKind::kLaunchGraph},
    NamedKind{"StreamSynchronize", HostCallKind::kStreamSync},
    NamedKind{"DeviceSynchronize", HostCallKind::kDeviceSync},
    NamedKind{"ThreadSynchronize", HostCallKind::kDeviceSync},
    NamedKind{"CtxSynchronize", HostCallKind::kDeviceSync},
    NamedKind{"EventSynchronize", HostCallKind::kEventSync},
    NamedKind{"EventRecord", HostCallKind::kEventRecord},
    NamedKind{"EventRecordWithFlags", HostCallKind::kEventRecord},
    NamedKind{"StreamWaitEvent", HostCallKind::kStreamWaitEvent},
    NamedKind{"EventQuery", HostCallKind::kEventQuery},
    NamedKind{"StreamQuery", HostCallKind::kEventQuery},
    NamedKind{"Launch", HostCallKind::kLaunchKernel},
    NamedKind{"LaunchByPtr", HostCallKind::kLaunchKernel},
    NamedKind{"LaunchGrid", HostCallKind::kLaunchKernel},
    NamedKind{"LaunchGridAsync", HostCallKind::kLaunchKernel},
    NamedKind{"Malloc", HostCallKind::kAlloc},
    NamedKind{"MallocAsync", HostCallKind::kAlloc},
    NamedKind{"MallocFromPoolAsync", HostCallKind::kAlloc},
    NamedKind{"MallocManaged", HostCallKind::kAlloc},
    NamedKind{"MallocPitch", HostCallKind::kAlloc},
    NamedKind{"MallocArray", HostCallKind::kAlloc},
    NamedKind{"Malloc3D", HostCallKind::kAlloc},
    NamedKind{"Malloc3DArray", HostCallKind::kAlloc},
    NamedKind{"ExtMallocWithFlags", HostCallKind::kAlloc},
    NamedKind{"HostAlloc", HostCallKind::kAlloc},
    NamedKind{"MallocHost", HostCallKind::kAlloc},
    NamedKind{"HostRegister", HostCallKind::kAlloc},
    NamedKind{"MemHostAlloc", HostCallKind::kAlloc},
    NamedKind{"MemHostRegister", HostCallKind::kAlloc},
    NamedKind{"MemAlloc", HostCallKind::kAlloc},
    NamedKind{"MemAllocAsync", HostCallKind::kAlloc},
    NamedKind{"MemAllocFromPoolAsync", HostCallKind::kAlloc},
    NamedKind{"MemAllocManaged", HostCallKind::kAlloc},
    NamedKind{"MemAllocPitch", HostCallKind::kAlloc},
    NamedKind{"Free", HostCallKind::kFree},
    NamedKind{"FreeHost", HostCallKind::kFree},
    NamedKind{"FreeArray", HostCallKind::kFree},
    NamedKind{"HostFree", HostCallKind::kFree},
    NamedKind{"HostUnregister", HostCallKind::kFree},
    NamedKind{"MemHostUnregister", HostCallKind::kFree},
    NamedKind{"MemPoolTrimTo", HostCallKind::kFree},
    NamedKind{"MemUnmap", HostCallKind::kFree},
    NamedKind{"MemFree", HostCallKind::kFree},
    NamedKind{"MemFreeHost", HostCallKind::kFree},
};

/// Beginnings of names.
constexpr std::array kBeginnings{
    NamedKind{"StreamWaitValue", HostCallKind::kStreamWaitEvent},
    NamedKind{"StreamWriteValue", HostCallKind::kEventRecord},
    NamedKind{"LaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"LaunchCooperativeKernel", HostCallKind::kLaunchKernel},
    NamedKind{"ModuleLaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"ModuleLaunchCooperativeKernel", HostCallKind::kLaunchKernel},
    NamedKind{"ExtModuleLaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"ExtLaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"ExtLaunchMultiKernel", HostCallKind::kLaunchKernel},
    NamedKind{"HccModuleLaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"DrvLaunchKernel", HostCallKind::kLaunchKernel},
    NamedKind{"Memcpy", HostCallKind::kCopy},
    NamedKind{"DrvMemcpy", HostCallKind::kCopy},
    NamedKind{"Memset", HostCallKind::kMemset},
};

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

/// Cuts _v2, _v7000, _ptsz, _ptds, _spt: variants of one call.
std::string_view without_suffix(std::string_view name) {
  return name.substr(0, name.find('_'));
}

}  // namespace

HostCallKind classify_host_call(std::string_view name) {
  const std::string_view call = without_suffix(without_prefix(name));
  for (const NamedKind& entry : kExact) {
    if (call == entry.name) return entry.kind;
  }
  for (const NamedKind& entry : kBeginnings) {
    if (call.starts_with(entry.name)) return entry.kind;
  }
  return HostCallKind::kOther;
}

CopyReturn copy_return(std::string_view call, std::string_view copy, CopyDirection direction) {
  const bool asynchronous = call.find("Async") != std::string_view::npos;
  const auto is_of = [&](std::string_view memory) {
    return copy.find(memory) != std::string_view::npos;
  };
  if (direction == CopyDirection::kDeviceToHost && (!asynchronous || is_of("Pageable"))) {
    return CopyReturn::kAfterEnd;
  }
  if (direction == CopyDirection::kHostToDevice && !asynchronous) return CopyReturn::kNearEnd;
  if (asynchronous && (direction == CopyDirection::kDeviceToDevice || is_of("Pinned"))) {
    return CopyReturn::kAtOnce;
  }
  return CopyReturn::kUnknown;
}

}  // namespace bubblesim::traces

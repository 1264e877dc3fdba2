#include "traces/names/host_call_names.hpp"

#include <algorithm>
#include <array>

namespace bubblesim::traces {
namespace {

struct NamesOfKind {
  HostCallKind kind;
  std::array<std::string_view, 21> names;  ///< without cuda, cu or hip; then empty ones
};

/// Whole names, after prefix and suffix are gone.
constexpr NamesOfKind kExact[] = {
    {HostCallKind::kLaunchGraph, {"GraphLaunch"}},
    {HostCallKind::kStreamSync, {"StreamSynchronize"}},
    {HostCallKind::kDeviceSync, {"DeviceSynchronize", "ThreadSynchronize", "CtxSynchronize"}},
    {HostCallKind::kEventSync, {"EventSynchronize"}},
    {HostCallKind::kEventRecord, {"EventRecord", "EventRecordWithFlags"}},
    {HostCallKind::kStreamWaitEvent, {"StreamWaitEvent"}},
    {HostCallKind::kEventQuery, {"EventQuery", "StreamQuery"}},
    {HostCallKind::kLaunchKernel, {"Launch", "LaunchByPtr", "LaunchGrid", "LaunchGridAsync"}},
    {HostCallKind::kAlloc, {"Malloc", "MallocAsync", "MallocFromPoolAsync", "MallocManaged",
      "MallocPitch", "MallocArray", "Malloc3D", "Malloc3DArray", "ExtMallocWithFlags", "HostAlloc",
      "MallocHost", "HostRegister", "MemHostAlloc", "MemHostRegister", "MemAlloc", "MemAllocAsync",
      "MemAllocFromPoolAsync", "MemAllocManaged", "MemAllocPitch", "MemCreate", "MemMap"}},
    {HostCallKind::kFree, {"Free", "FreeHost", "FreeArray", "HostFree", "HostUnregister",
      "MemHostUnregister", "MemPoolTrimTo", "MemUnmap", "MemRelease", "MemFree", "MemFreeHost"}},
};

/// Beginnings of names.
constexpr NamesOfKind kBeginnings[] = {
    {HostCallKind::kStreamWaitEvent, {"StreamWaitValue"}},
    {HostCallKind::kEventRecord, {"StreamWriteValue"}},
    {HostCallKind::kLaunchKernel, {"LaunchKernel", "LaunchCooperativeKernel", "ModuleLaunchKernel",
      "ModuleLaunchCooperativeKernel", "ExtModuleLaunchKernel", "ExtLaunchKernel",
      "ExtLaunchMultiKernel", "HccModuleLaunchKernel", "DrvLaunchKernel"}},
    {HostCallKind::kCopy, {"Memcpy", "DrvMemcpy"}},
    {HostCallKind::kMemset, {"Memset"}},
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
  if (call.empty()) return HostCallKind::kOther;
  for (const NamesOfKind& entry : kExact) {
    if (std::ranges::find(entry.names, call) != entry.names.end()) return entry.kind;
  }
  for (const NamesOfKind& entry : kBeginnings) {
    for (const std::string_view beginning : entry.names) {
      if (!beginning.empty() && call.starts_with(beginning)) return entry.kind;
    }
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

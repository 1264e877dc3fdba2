// What a call of the CUDA or HIP runtime or driver does, by its name.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// kOther for names that are not in the table. Versions and stream suffixes (_v2, _ptsz) do not
/// matter. Sources: CUDA 12 runtime and driver API reference, HIP 6 runtime API reference.
[[nodiscard]] HostCallKind classify_host_call(std::string_view name);

/// When the call of a copy returns, as far as names tell; kNearEnd: with the last part of pageable
/// memory on its way.
enum class CopyReturn { kAfterEnd, kNearEnd, kAtOnce, kUnknown };

/// `copy`: the operation's name, which with PyTorch says which memory ("Pageable", "Pinned").
/// Source: CUDA runtime API, "API synchronization behavior": copies from the device return when
/// they have ended, asynchronous ones only with pageable memory; asynchronous ones within the
/// device, and with pinned memory, at once; others to the device when pageable memory is staged,
/// and not before the stream has come to them.
[[nodiscard]] CopyReturn copy_return(std::string_view call, std::string_view copy,
                                     CopyDirection direction);

}  // namespace bubblesim::traces

// Classifies calls of the CUDA or HIP runtime or driver by name.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// kOther for names that are not in the table. Versions and stream suffixes (_v2, _ptsz) do not
/// matter. Sources: CUDA 12 runtime and driver API reference, HIP 6 runtime API reference.
[[nodiscard]] HostCallKind classify_host_call(std::string_view name);

/// When the call of a copy returns, judging by names. kNearEnd: the last part of pageable memory is
/// still on its way to the device.
enum class CopyReturn { kAfterEnd, kNearEnd, kAtOnce, kUnknown };

/// `copy`: the operation's name, in which PyTorch puts the kind of host memory ("Pageable",
/// "Pinned"). Source: CUDA runtime API, "API synchronization behavior". A copy from the device
/// returns after its end if it is synchronous or its memory is pageable. An asynchronous copy
/// returns at once if it stays within the device or its memory is pinned. A synchronous copy to the
/// device waits for its turn on the stream and returns once pageable memory is staged.
[[nodiscard]] CopyReturn copy_return(std::string_view call, std::string_view copy,
                                     CopyDirection direction);

}  // namespace bubblesim::traces

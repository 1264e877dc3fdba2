// What a call of the CUDA or HIP runtime or driver does, by its name.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace bubblesim::traces {

/// kOther for names that are not in the table. Versions and stream suffixes (_v2, _ptsz) do not
/// matter. Sources: CUDA 12 runtime and driver API reference, HIP 6 runtime API reference.
[[nodiscard]] HostCallKind classify_host_call(std::string_view name);

}  // namespace bubblesim::traces

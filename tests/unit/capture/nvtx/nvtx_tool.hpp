// What the test program may ask of the tool that NVTX loaded.
#pragma once

#include <vector>

#include "capture/record/host/host_event.hpp"

namespace bubblesim::capture {

struct NvtxTool {
  std::vector<HostEvent> (*take)();
  void (*set_recording)(bool recording);
};

/// The symbol to look for in the loaded tool.
inline constexpr const char* kNvtxToolSymbol = "bubblesim_nvtx_tool";
using GetNvtxTool = const NvtxTool* (*)();

}  // namespace bubblesim::capture

// The interface of the tool that NVTX loaded, for the test program.
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

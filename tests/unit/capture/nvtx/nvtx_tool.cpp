// The tool that the real NVTX loads in tests: the code under test, a session's double, and a way
// for the test program to ask it what came.
#include "tests/unit/capture/nvtx/nvtx_tool.hpp"

#include "tests/unit/capture/nccl/host_double.hpp"

namespace {

bubblesim::capture::HostDouble& host() { return bubblesim::capture::host_double(); }

std::vector<bubblesim::capture::HostEvent> take() { return host().take(); }
void set_recording(bool recording) { host().recording = recording; }

const bubblesim::capture::NvtxTool tool{&take, &set_recording};

}  // namespace

extern "C" __attribute__((visibility("default"))) const bubblesim::capture::NvtxTool*
bubblesim_nvtx_tool() {
  return &tool;
}

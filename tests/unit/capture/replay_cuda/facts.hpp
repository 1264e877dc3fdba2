// An H100's facts, for tests without a driver.
#pragma once

#include "capture/replay/cuda/device_context.hpp"

namespace bubblesim::capture::cuda {

inline DeviceFacts h100() {
  DeviceFacts facts;
  facts.name = "H100";
  facts.uuid = "GPU-0";
  facts.driver_version = 13000;
  facts.sm_count = 132;
  facts.clock_khz = 1'980'000;
  facts.dram_bytes_per_second = 3'352'320'000'000;
  facts.l2_bytes = 50 << 20;
  facts.threads_per_block = 1024;
  facts.threads_per_sm = 2048;
  facts.blocks_per_sm = 32;
  facts.registers_per_sm = 65'536;
  facts.shared_bytes_per_sm = 233'472;
  facts.shared_bytes_per_block = 232'448;
  facts.reserved_shared_bytes = 1'024;
  facts.most_blocks = {2'147'483'647, 65'535, 65'535};
  facts.most_threads = {1'024, 1'024, 64};
  return facts;
}

}  // namespace bubblesim::capture::cuda

// Any bytes as a device file: refused with faults, or read into a spec whose ranges hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/base/json_reader.hpp"
#include "sim/hardware/gpu_spec_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = bubblesim::JsonDocument::parse(std::string(data, data + size), "fuzz.json");
  if (!document) return 0;
  bubblesim::Errors errors;
  bubblesim::ObjectReader root = document->root(errors);
  const auto device = bubblesim::hardware::read_constants(root);
  const auto& spec = device.spec;
  const bool usable = spec.sm_count > 0 && spec.sm.max_warps > 0 && spec.sm.register_unit > 0 &&
                      spec.sm.shared_memory_unit_bytes > 0 && spec.memory.value > 0 &&
                      spec.dram_bandwidth.value > 0 && spec.time_slice > bubblesim::Duration{0};
  if (errors.empty() && !usable) std::abort();
  return 0;
}

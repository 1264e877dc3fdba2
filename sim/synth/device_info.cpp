#include "sim/synth/device_info.hpp"

namespace bubblesim::synth {

traces::DeviceInfo device_info(const hardware::GpuSpec& spec) {
  traces::DeviceInfo info;
  info.name = spec.name;
  info.sm_count = spec.sm_count;
  info.compute_major = spec.compute_major;
  info.compute_minor = spec.compute_minor;
  info.memory_bytes = spec.memory.value;
  return info;
}

}  // namespace bubblesim::synth

#include "sim/validate/pair_machine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency_file.hpp"

namespace bubblesim::validate {
namespace {

using hardware::GpuSpec;

Duration span_of(double ns) { return Duration{std::llround(ns)}; }

struct Constant {
  std::string_view key;
  void (*put)(GpuSpec& gpu, double value);
};

constexpr std::array<Constant, 10> kConstants{{
    {"time_slice", [](GpuSpec& gpu, double ns) { gpu.time_slice = span_of(ns); }},
    {"context_switch", [](GpuSpec& gpu, double ns) { gpu.context_switch = span_of(ns); }},
    {"client_switch", [](GpuSpec& gpu, double ns) { gpu.client_switch = span_of(ns); }},
    {"even_clients",
     [](GpuSpec& gpu, double even) {
       gpu.client_order = even > 0 ? hardware::ClientOrder::kEven : hardware::ClientOrder::kArrival;
     }},
    {"dram_reach", [](GpuSpec& gpu, double share) { gpu.dram_reach = share; }},
    {"part/dram_saturating_sms",
     [](GpuSpec& gpu, double share) { gpu.part.dram_saturating_sms = share; }},
    {"part/dark_clock_gain", [](GpuSpec& gpu, double gain) { gpu.part.dark_clock_gain = gain; }},
    {"contention/l2_slowdown",
     [](GpuSpec& gpu, double slowdown) { gpu.contention.l2_slowdown = slowdown; }},
    {"contention/issue_shares",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_issue_share = gpu.contention.memory_kernel_issue_share =
           gpu.contention.unknown_kernel_issue_share = share;
     }},
    {"contention/memory_boundness",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_memory_boundness =
           gpu.contention.memory_kernel_memory_boundness =
               gpu.contention.unknown_kernel_memory_boundness = share;
     }},
}};

// NVIDIA MIG user guide: 1, 2, 3, 4, 7 of 7 compute slices; 1, 2, 4 of 4 (A30).
bool has_instance(std::uint32_t all_slices, std::uint32_t slices) {
  if (slices == 0 || slices > all_slices) return false;
  return slices <= 2 || slices == all_slices || (all_slices == 7 && slices <= 4);
}

std::string instances_text(std::uint32_t all_slices) {
  std::string out;
  for (std::uint32_t slices = 1; slices <= all_slices; ++slices) {
    if (!has_instance(all_slices, slices)) continue;
    out += (out.empty() ? "it has those of " : ", ") + std::to_string(slices);
  }
  return out.empty() ? "it has none" : out;
}

}  // namespace

CheckedResult<PairMachine> find_pair_machine(const std::string& device,
                                             const std::string& configs) {
  PairMachine out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.gpu, hardware::find_gpu_spec(device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.efficiency,
                             model::find_efficiency(device, configs + "/efficiency"));
  out.models = configs + "/models";
  return out;
}

// Memory slices of a profile by NVIDIA's table for GPUs of 7 compute and 8 memory slices.
Result<PairMachine> mig_instance(const PairMachine& whole, std::uint32_t slices) {
  const hardware::GpuSpec& gpu = whole.gpu;
  const MigGeometry& mig = gpu.mig;
  if (!has_instance(mig.compute_slices, slices)) {
    return fail(gpu.name + " has no MIG instance of " + std::to_string(slices) +
                " compute slices; " + instances_text(mig.compute_slices));
  }
  const std::uint32_t memory = slices == mig.compute_slices ? mig.memory_slices
                               : slices == 3                ? std::min(4U, mig.memory_slices)
                                                            : slices;
  const double of_memory = static_cast<double>(memory) / mig.memory_slices;
  PairMachine out = whole;
  out.gpu.sm_count = mig.sms_of(slices);
  out.gpu.dram_bandwidth.value *= of_memory;
  out.gpu.memory.value = gpu.memory.value / mig.memory_slices * memory;
  if (slices < mig.compute_slices) out.gpu.mig = {};  // an instance is not cut again
  for (double& peak : out.efficiency.peak_flops) {
    peak *= static_cast<double>(out.gpu.sm_count) / gpu.sm_count;
  }
  out.efficiency.l2_resident_bytes *= of_memory;
  return out;
}

Result<void> put_constant(GpuSpec& gpu, const std::string& key, double value) {
  const auto constant = std::ranges::find(kConstants, key, &Constant::key);
  if (constant == kConstants.end()) {
    std::vector<std::string_view> known;
    for (const Constant& each : kConstants) known.push_back(each.key);
    return fail("changes", {}, unknown_name_message("constant", key, std::span(known)));
  }
  constant->put(gpu, value);
  return {};
}

}  // namespace bubblesim::validate

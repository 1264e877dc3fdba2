#include "sim/measure/calibrate/probes.hpp"

#include <array>
#include <map>
#include <utility>

#include "sim/measure/calibrate/probe_plan.hpp"

namespace bubblesim::measure {
namespace {

using capture::CopyPath;

constexpr std::uint64_t kCopyPasses = 16;
// Multiples of the pieces in which long copies are made (capture/replay/cuda); within the device
// far more than its L2 cache holds.
constexpr std::uint64_t kMiB = 1ULL << 20;

struct Sizes {
  CopyPath path;
  std::uint64_t small;
  std::uint64_t large;
};
constexpr std::array<Sizes, 3> kSizes{{{CopyPath::kHostToDevice, 64 * kMiB, 192 * kMiB},
                                       {CopyPath::kDeviceToHost, 64 * kMiB, 192 * kMiB},
                                       {CopyPath::kDeviceToDevice, 512 * kMiB, 1536 * kMiB}}};

}  // namespace

ProbeRun copy_run(const hardware::GpuSpec&) {
  ProbePlan plan("copies", 0);
  for (const Sizes& sizes : kSizes) {
    for (const std::uint64_t bytes : {sizes.small, sizes.large}) {
      plan.copy(sizes.path, Bytes{bytes});
      plan.wait();
    }
  }
  return probe_run(policy::SharingMode::kSpatial, {plan.take(kCopyPasses)});
}

std::vector<Finding> copy_findings(const Records& records, const hardware::GpuSpec& base) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, double> length;  // by pass and operation
  for (const capture::OperationRecord& copy : records.front().operations) {
    length[{copy.pass, copy.op}] = length_of(copy);
  }
  std::vector<double> host, dram;
  for (const auto& [place, small] : length) {
    const auto& [pass, op] = place;
    const auto large = length.find({pass, op + 1});
    if (op % 2 != 0 || large == length.end() || large->second <= small) continue;
    const Sizes& sizes = kSizes[op / 2];
    const double rate =
        static_cast<double>(sizes.large - sizes.small) / ((large->second - small) * 1e-9);
    if (sizes.path == CopyPath::kDeviceToDevice) {
      dram.push_back(2 * rate / base.dram_bandwidth.value);
    } else {
      host.push_back(rate);
    }
  }
  Finding reach = finding_of("dram_reach", std::move(dram), 0);
  if (reach.missing.empty() && reach.spread.middle > 1) {
    reach.missing = "copies move more than the base's dram_bandwidth: it is another card's";
  }
  return {std::move(reach),
          finding_of("host_bandwidth", std::move(host), 0)};
}

}  // namespace bubblesim::measure

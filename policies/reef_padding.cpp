#include "policies/reef_padding.hpp"

#include <algorithm>

#include "sim/base/divide.hpp"

namespace bubblesim::policies {
namespace {

/// Outstanding collectives are few and near the front of a queue; only this many launches are
/// searched for them.
constexpr std::size_t kDepth = 16;

/// SMs that REEF gives a launch: the fewest on which it has no more blocks an SM than on all of
/// them. Each block of a collective has its own.
std::uint64_t covered_sms(const QueuedLaunch& launch, std::uint32_t gpu_sms) {
  if (launch.kind == policy::WorkKind::kCollective) return launch.blocks;
  if (launch.blocks == 0) return gpu_sms;
  return divide_up(launch.blocks, divide_up(launch.blocks, gpu_sms));
}

}  // namespace

PaddingRoom padding_room(const LaunchQueue& training, policy::Instant since,
                         std::uint32_t gpu_sms) {
  const QueuedLaunch& front = training.front();
  const bool kernel = front.kind == policy::WorkKind::kKernel ||
                      front.kind == policy::WorkKind::kCollective;
  if (!kernel || front.profiled <= Duration{}) return {};
  std::uint64_t covered = covered_sms(front, gpu_sms);
  bool compute = front.kind == policy::WorkKind::kKernel;
  for (std::size_t i = 1; i < std::min(training.size(), kDepth); ++i) {
    const QueuedLaunch& launch = training[i];
    if (launch.operations == 0) continue;
    const bool collective = launch.kind == policy::WorkKind::kCollective;
    // After a collective, the first kernel may run in another stream.
    if (collective || (!compute && launch.kind == policy::WorkKind::kKernel)) {
      covered += covered_sms(launch, gpu_sms);
      compute = compute || !collective;
    }
  }
  if (covered >= gpu_sms) return {};
  return {static_cast<std::uint32_t>(gpu_sms - covered), since + front.profiled};
}

std::optional<Duration> wave_length(std::uint64_t blocks, std::uint64_t sm_blocks,
                                    Duration profiled) {
  if (profiled <= Duration{} || sm_blocks == 0 || blocks == 0) return std::nullopt;
  return profiled / static_cast<std::int64_t>(divide_up(blocks, sm_blocks));
}

}  // namespace bubblesim::policies

#include "capture/replay/cuda/device_clock.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "capture/replay/cuda/stand_in_arguments.hpp"

namespace bubblesim::capture::cuda {
namespace {

/// In a shorter time drift cannot be told from the spread of pings.
constexpr std::int64_t kLeastSpan = 100'000'000;  ///< ns
constexpr std::int64_t kSureSpan = 1'000'000'000;
constexpr std::size_t kBlockRecords = 64;
constexpr double kMostRate = 1e-3;  ///< no two clocks drift apart faster

/// One ping, in nanoseconds.
struct Ping {
  std::int64_t round = 0;   ///< from before the launch call until the host saw the record
  std::int64_t middle = 0;  ///< offset, if the device read its clock halfway from the call's return
                            ///< to then
};

/// The best offset of the fastest quarter: on a GPU that others use, most pings wait for a turn.
std::int64_t best_of(std::vector<Ping> pings) {
  std::ranges::sort(pings, {}, &Ping::round);
  pings.resize((pings.size() + 3) / 4);
  const auto middle = pings.begin() + static_cast<std::ptrdiff_t>(pings.size() / 2);
  std::ranges::nth_element(pings, middle, {}, &Ping::middle);
  return middle->middle;
}

}  // namespace

void ClockTrack::measured(const ClockOffset& offset) {
  if (!measured_) first_ = offset;
  const std::int64_t span = offset.at_ns - first_.at_ns;
  if (span >= kLeastSpan) {
    const double rate = static_cast<double>(offset.highest_ns - first_.highest_ns) /
                        static_cast<double>(span);
    rate_ = std::clamp(rate, -kMostRate, kMostRate);
  }
  sure_ = span >= kSureSpan;
  offset_ = offset;
  // Others may have used the GPU meanwhile, so that every ping waited for its turn: then only the
  // upper bound is right. Its distance from the best value was measured first.
  if (measured_) offset_.best_ns = offset.highest_ns - (first_.highest_ns - first_.best_ns);
  measured_ = true;
  block_end_ns_ = 2 * kLeastSpan;
  lowest_rate_ = std::numeric_limits<double>::max();
  records_ = 0;
}

void ClockTrack::saw(HostTime now, std::uint64_t device_ns) {
  const auto device = static_cast<std::int64_t>(device_ns);
  const std::int64_t span = device - offset_.at_ns;
  if (!measured_ || sure_ || span < kLeastSpan) return;
  const std::int64_t bound = to_ns(now) - device;
  const double rate = static_cast<double>(bound - offset_.highest_ns) / static_cast<double>(span);
  if (rate < -kMostRate) return;  // a clock was set: no drift
  lowest_rate_ = std::min(lowest_rate_, rate);
  ++records_;
  if (records_ < kBlockRecords) return;
  rate_ = std::min(lowest_rate_, kMostRate);
  if (span < block_end_ns_) return;
  block_end_ns_ = 2 * span;
  lowest_rate_ = std::numeric_limits<double>::max();
  records_ = 0;
}

// By the upper bounds: other users of the GPU do not delay the host's sight of a record.
std::int64_t ClockTrack::error_ns(const ClockOffset& now) const {
  return moved_ns(now) - change_ns(now.at_ns);
}

Result<ClockOffset> measure_offset(DeviceContext& context, HostClock& clock, StreamHandle stream,
                                   Duration patience, std::uint32_t pings) {
  const Driver& driver = context.driver();
  BUBBLESIM_ASSIGN_OR_RETURN(const KernelHandle kernel, context.kernel("ping_device"));
  DevicePointer pointer = 0;
  BUBBLESIM_ASSIGN_OR_RETURN(const OwnHostMemory memory,
                             make_shared_memory(driver, sizeof(RecordSlot), pointer));
  RecordSlot& slot = *static_cast<RecordSlot*>(memory.get());
  ClockOffset offset{std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(),
                     0,
                     std::numeric_limits<std::int64_t>::max(),
                     0};
  std::vector<Ping> all;
  for (std::uint64_t n = 1; n <= pings; ++n) {
    PingArguments arguments{pointer, n};
    void* list[] = {&arguments};
    const HostTime before = clock.now();
    BUBBLESIM_CUDA(driver, launch_kernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, list, nullptr);
    const HostTime returned = clock.now();
    while (std::atomic_ref(slot.ended).load(std::memory_order_acquire) != n)
      if (clock.now() > before + patience)
        return fail(context.facts().name + " does not answer: a kernel that reads the time had "
                    "not ended after " + std::to_string(to_ns(patience) / 1'000'000) + " ms");
    const HostTime after = clock.now();
    const auto device = static_cast<std::int64_t>(slot.start_ns);
    const auto next = static_cast<std::int64_t>(slot.end_ns);
    offset.lowest_ns = std::max(offset.lowest_ns, to_ns(before) - device);
    offset.highest_ns = std::min(offset.highest_ns, to_ns(after) - device);
    offset.tick_ns = std::min(offset.tick_ns, next - device);
    offset.at_ns = device;
    all.push_back({to_ns(after - before), to_ns(returned + (after - returned) / 2) - device});
  }
  // If clocks drift apart during the comparison, the bounds cross.
  if (offset.lowest_ns > offset.highest_ns) std::swap(offset.lowest_ns, offset.highest_ns);
  if (!all.empty())
    offset.best_ns = std::clamp(best_of(std::move(all)), offset.lowest_ns, offset.highest_ns);
  return offset;
}

}  // namespace bubblesim::capture::cuda

#include "capture/replay/cuda/device_clock.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "capture/replay/cuda/stand_in_arguments.hpp"

namespace bubblesim::capture::cuda {
namespace {

/// A slot that the device writes; let go of with the object.
class PingSlot {
 public:
  explicit PingSlot(const Driver& driver) : driver_(driver) {}
  ~PingSlot() {
    if (slot_ != nullptr) (void)driver_.host_release(slot_);
  }
  PingSlot(const PingSlot&) = delete;
  PingSlot& operator=(const PingSlot&) = delete;

  [[nodiscard]] Result<std::uint64_t> make() {
    void* memory = nullptr;
    BUBBLESIM_CUDA(driver_, host_allocate, &memory, sizeof(RecordSlot),
                   kHostAllocPortable | kHostAllocDeviceMap);
    std::memset(memory, 0, sizeof(RecordSlot));
    slot_ = static_cast<RecordSlot*>(memory);
    DevicePointer pointer = 0;
    BUBBLESIM_CUDA(driver_, host_device_pointer, &pointer, memory, 0);
    return pointer;
  }
  [[nodiscard]] bool ended(std::uint64_t n) const {
    return std::atomic_ref(slot_->ended).load(std::memory_order_acquire) == n;
  }
  [[nodiscard]] const RecordSlot& record() const { return *slot_; }

 private:
  const Driver& driver_;
  RecordSlot* slot_ = nullptr;
};

}  // namespace

Result<ClockOffset> measure_offset(DeviceContext& context, HostClock& clock, StreamHandle stream,
                                   Duration patience, std::uint32_t pings) {
  const Driver& driver = context.driver();
  BUBBLESIM_ASSIGN_OR_RETURN(const KernelHandle kernel, context.kernel("ping_device"));
  PingSlot slot(driver);
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t pointer, slot.make());
  ClockOffset offset{std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(),
                     std::numeric_limits<std::int64_t>::max()};
  for (std::uint64_t n = 1; n <= pings; ++n) {
    PingArguments arguments{pointer, n};
    void* list[] = {&arguments};
    const HostTime before = clock.now();
    BUBBLESIM_CUDA(driver, launch_kernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, list, nullptr);
    while (!slot.ended(n))
      if (clock.now() > before + patience)
        return fail(context.facts().name + " does not answer: a kernel that reads the time had "
                    "not ended after " + std::to_string(to_ns(patience) / 1'000'000) + " ms");
    const HostTime after = clock.now();
    const auto device = static_cast<std::int64_t>(slot.record().start_ns);
    const auto next = static_cast<std::int64_t>(slot.record().end_ns);
    offset.lowest_ns = std::max(offset.lowest_ns, to_ns(before) - device);
    offset.highest_ns = std::min(offset.highest_ns, to_ns(after) - device);
    offset.tick_ns = std::min(offset.tick_ns, next - device);
  }
  // Clocks that drift apart while they are compared leave bounds that cross.
  if (offset.lowest_ns > offset.highest_ns) std::swap(offset.lowest_ns, offset.highest_ns);
  return offset;
}

}  // namespace bubblesim::capture::cuda

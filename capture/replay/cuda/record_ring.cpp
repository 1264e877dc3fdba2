#include "capture/replay/cuda/record_ring.hpp"

#include <atomic>
#include <cstring>

namespace bubblesim::capture::cuda {

Result<std::unique_ptr<RecordRing>> RecordRing::make(const Driver& driver,
                                                     std::uint32_t operations) {
  std::unique_ptr<RecordRing> ring(new RecordRing(driver));
  const std::size_t bytes = std::size_t{operations} * kSlots * sizeof(RecordSlot);
  void* memory = nullptr;
  BUBBLESIM_CUDA(driver, host_allocate, &memory, bytes, kHostAllocPortable | kHostAllocDeviceMap);
  std::memset(memory, 0, bytes);
  ring->host_ = static_cast<RecordSlot*>(memory);
  BUBBLESIM_CUDA(driver, host_device_pointer, &ring->slots_, memory, 0);
  const std::size_t states = std::size_t{operations} * sizeof(OperationState);
  BUBBLESIM_CUDA(driver, allocate, &ring->states_, states);
  BUBBLESIM_CUDA(driver, set_bytes, ring->states_, 0, states, nullptr);
  Status status = Status::kNotReady;
  while (status == Status::kNotReady) status = driver.stream_query(nullptr);
  BUBBLESIM_RETURN_IF_ERROR(checked(driver, status, "stream_query"));
  return ring;
}

RecordRing::~RecordRing() {
  if (states_ != 0) (void)driver_.release(states_);
  if (host_ != nullptr) (void)driver_.host_release(host_);
}

std::uint64_t RecordRing::slots(std::uint32_t op) const {
  return slots_ + std::uint64_t{op} * kSlots * sizeof(RecordSlot);
}
std::uint64_t RecordRing::state(std::uint32_t op) const {
  return states_ + std::uint64_t{op} * sizeof(OperationState);
}
RecordSlot& RecordRing::slot(std::uint32_t op, std::uint64_t n) const {
  return host_[std::uint64_t{op} * kSlots + ((n - 1) & (kSlots - 1))];
}

bool RecordRing::started(std::uint32_t op, std::uint64_t n) const {
  return std::atomic_ref(slot(op, n).started).load(std::memory_order_acquire) == n;
}
bool RecordRing::ended(std::uint32_t op, std::uint64_t n) const {
  return started(op, n) &&
         std::atomic_ref(slot(op, n).ended).load(std::memory_order_acquire) == n;
}
std::uint64_t RecordRing::start_ns(std::uint32_t op, std::uint64_t n) const {
  return std::atomic_ref(slot(op, n).start_ns).load(std::memory_order_relaxed);
}
std::uint64_t RecordRing::end_ns(std::uint32_t op, std::uint64_t n) const {
  return std::atomic_ref(slot(op, n).end_ns).load(std::memory_order_relaxed);
}

}  // namespace bubblesim::capture::cuda

// Memory, copies and memsets. Small allocations are real; large ones are addresses that nobody
// looks behind.
#include <algorithm>
#include <cstring>

#include "tests/fakes/driver/fake_driver_state.hpp"

namespace {

using namespace fake_driver;
using abi::DevicePointer, abi::Status;

constexpr std::uint64_t kReal = 1 << 20;

std::uint64_t held(const State& all) {
  std::uint64_t bytes = 0;
  for (const auto& [address, one] : all.memory) bytes += one.first;
  return bytes;
}

/// The real memory behind an address; null: there is none.
bool is_real(const State& all, DevicePointer memory) {
  auto after = all.memory.upper_bound(memory);
  if (after == all.memory.begin()) return false;
  const auto& [address, one] = *std::prev(after);
  return one.second != nullptr && memory < address + one.first;
}

Status copy(State& all, std::size_t bytes, abi::StreamHandle stream, const char* name) {
  Work work;
  work.shown.name = name;
  work.shown.bytes = bytes;
  const auto lasts = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes) / kBytesPerNs);
  work.duration = [lasts] { return lasts; };
  put(all, stream_of(all, stream), std::move(work));
  return Status::kSuccess;
}

}  // namespace

FAKE_CALL cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  FAKE_ENTER("cuMemGetInfo_v2");
  *total = kMemory;
  *free = kMemory - held(all);
  return Status::kSuccess;
}
FAKE_CALL cuMemAlloc_v2(DevicePointer* memory, std::size_t bytes) {
  FAKE_ENTER("cuMemAlloc_v2");
  if (held(all) + bytes > kMemory) return Status::kOutOfMemory;
  std::unique_ptr<char[]> real;
  if (bytes <= kReal) real = std::make_unique<char[]>(bytes + 16);
  *memory = real ? reinterpret_cast<DevicePointer>(real.get()) : all.next_address;
  if (!real) all.next_address += bytes;
  all.memory[*memory] = {bytes, std::move(real)};
  return Status::kSuccess;
}
FAKE_CALL cuMemFree_v2(DevicePointer memory) {
  FAKE_ENTER("cuMemFree_v2");
  return all.memory.erase(memory) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  FAKE_ENTER("cuMemHostAlloc");
  auto real = std::make_unique<char[]>(std::min<std::size_t>(bytes, 8 * kReal));
  *memory = real.get();
  all.host_memory[*memory] = std::move(real);
  return Status::kSuccess;
}
FAKE_CALL cuMemFreeHost(void* memory) {
  FAKE_ENTER("cuMemFreeHost");
  return all.host_memory.erase(memory) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* memory, unsigned) {
  FAKE_ENTER("cuMemHostGetDevicePointer_v2");
  *pointer = reinterpret_cast<DevicePointer>(memory);
  return Status::kSuccess;
}
FAKE_CALL cuMemsetD8Async(DevicePointer memory, unsigned char value, std::size_t bytes,
                          abi::StreamHandle stream) {
  FAKE_ENTER("cuMemsetD8Async");
  if (is_real(all, memory)) std::memset(reinterpret_cast<void*>(memory), value, bytes);
  return copy(all, bytes, stream, "memset");
}
/// What is put on a stream later reads the words when it is put there, so they may be set at once.
FAKE_CALL cuMemsetD32Async(DevicePointer memory, unsigned value, std::size_t words,
                           abi::StreamHandle) {
  FAKE_ENTER("cuMemsetD32Async");
  for (std::size_t i = 0; i < words; ++i)
    std::memcpy(reinterpret_cast<char*>(memory) + 4 * i, &value, 4);
  return Status::kSuccess;
}
FAKE_CALL cuMemcpyHtoDAsync_v2(DevicePointer, const void*, std::size_t bytes,
                               abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyHtoDAsync_v2");
  return copy(all, bytes, stream, "copy to device");
}
FAKE_CALL cuMemcpyDtoHAsync_v2(void*, DevicePointer, std::size_t bytes, abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyDtoHAsync_v2");
  return copy(all, bytes, stream, "copy to host");
}
FAKE_CALL cuMemcpyDtoDAsync_v2(DevicePointer, DevicePointer, std::size_t bytes,
                               abi::StreamHandle stream) {
  FAKE_ENTER("cuMemcpyDtoDAsync_v2");
  return copy(all, bytes, stream, "copy on device");
}

// Devices, kernels and their launches.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "capture/replay/cuda/stand_in_arguments.hpp"
#include "tests/fakes/driver/fake_driver_state.hpp"

namespace {

using namespace fake_driver;
using abi::Status;
using bubblesim::capture::cuda::kRateUnit, bubblesim::capture::cuda::OperationState;
using bubblesim::capture::cuda::PingArguments, bubblesim::capture::cuda::RecordSlot;
using bubblesim::capture::cuda::StampArguments, bubblesim::capture::cuda::StandInArguments;

void store(std::uint64_t& into, std::uint64_t value) {
  std::atomic_ref(into).store(value, std::memory_order_release);
}
template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

/// As stand_in_kernels.cu does.
void write_start(std::uint64_t state_at, std::uint64_t slots, std::uint32_t count,
                 std::uint64_t now) {
  const std::uint64_t n = at<OperationState>(state_at)->progress >> 32;
  RecordSlot& slot = at<RecordSlot>(slots)[n & (count - 1)];
  store(slot.start_ns, now);
  store(slot.started, n + 1);
}
void write_end(std::uint64_t state_at, std::uint64_t slots, std::uint32_t count,
               std::uint64_t now) {
  std::uint64_t& progress = at<OperationState>(state_at)->progress;
  const std::uint64_t n = progress >> 32;
  progress = (n + 1) << 32;
  if (state().loses_records) return;
  RecordSlot& slot = at<RecordSlot>(slots)[n & (count - 1)];
  store(slot.end_ns, now);
  store(slot.ended, n + 1);
}

double loops_of(const StandInArguments& a) {
  const double scale = a.scale == 0 ? 1.0 : double(*at<float>(a.scale));
  return std::max(0.0, double(a.base) + double(a.slope) * scale);
}

Work stand_in(const StandInArguments& a, bool collective) {
  Work work;
  work.gap = kGapNs;
  work.duration = [a, collective] {
    const double loops = loops_of(a);
    if (collective) return std::max(std::int64_t{std::lround(loops)}, std::int64_t{1});
    const double steps = loops * double(a.memory_rate) / kRateUnit;
    const std::int64_t exact = kFloorNs + std::lround(loops * kLoopNs + steps * kMemoryStepNs);
    const std::int64_t quantum = state().quantum;
    return (exact + quantum - 1) / quantum * quantum;
  };
  work.shown.first_line = a.first_line;
  work.shown.advance = a.advance;
  work.at_start = [a](std::uint64_t now) { write_start(a.state, a.slots, a.slot_count, now); };
  work.at_end = [a](std::uint64_t now) { write_end(a.state, a.slots, a.slot_count, now); };
  return work;
}

Work stamp(const StampArguments& a, bool begins) {
  Work work;
  work.duration = [] { return std::int64_t{1'000}; };
  work.at_end = [a, begins](std::uint64_t now) {
    (begins ? write_start : write_end)(a.state, a.slots, a.slot_count, now);
  };
  return work;
}

Work ping(const PingArguments& a) {
  Work work;
  work.duration = [] { return std::int64_t{1'000}; };
  work.at_end = [a](std::uint64_t now) {
    auto* slot = at<RecordSlot>(a.slot);
    store(slot->start_ns, now);
    store(slot->end_ns, now + 32);
    store(slot->ended, a.number);
  };
  return work;
}

template <class Arguments>
Arguments copied(void** list) {
  Arguments arguments{};
  std::memcpy(&arguments, list[0], sizeof(arguments));
  return arguments;
}

Work work_of(const std::string& name, void** list) {
  if (name == "ping_device") return ping(copied<PingArguments>(list));
  if (name.ends_with("_copy")) return stamp(copied<StampArguments>(list), name == "begin_copy");
  return stand_in(copied<StandInArguments>(list), name.starts_with("collective"));
}

int attribute(int which) {
  switch (which) {
    case abi::kMaxThreadsPerBlock: case abi::kMaxBlockX: case abi::kMaxBlockY: return 1024;
    case abi::kMaxBlockZ: return 64;
    case abi::kMaxGridX: return 2147483647;
    case abi::kMaxGridY: case abi::kMaxGridZ: return 65535;
    case abi::kClockKhz: return 1'980'000;
    case abi::kSmCount: return kSms;
    case abi::kMemoryClockKhz: return 2'619'000;
    case abi::kMemoryBusBits: return 5120;
    case abi::kL2Bytes: return 50 << 20;
    case abi::kMaxThreadsPerSm: return 2048;
    case abi::kSharedBytesPerSm: return 233'472;
    case abi::kRegistersPerSm: return 65'536;
    case abi::kSharedBytesPerBlock: return 232'448;
    case abi::kMaxBlocksPerSm: return 32;
    case abi::kReservedSharedBytes: return 1024;
    default: return 0;
  }
}

}  // namespace

FAKE_CALL cuInit(unsigned) {
  FAKE_ENTER("cuInit");
  return Status::kSuccess;
}
FAKE_CALL cuGetErrorString(Status status, const char** text) {
  *text = status == Status::kOutOfMemory ? "out of memory" : "the fake's failure";
  return Status::kSuccess;
}
FAKE_CALL cuDriverGetVersion(int* version) {
  FAKE_ENTER("cuDriverGetVersion");
  *version = 13000;
  return Status::kSuccess;
}
FAKE_CALL cuDeviceGetCount(int* count) {
  FAKE_ENTER("cuDeviceGetCount");
  *count = 1;
  return Status::kSuccess;
}
FAKE_CALL cuDeviceGet(int* device, int index) {
  FAKE_ENTER("cuDeviceGet");
  *device = index;
  return Status::kSuccess;
}
FAKE_CALL cuDeviceGetName(char* name, int bytes, int) {
  FAKE_ENTER("cuDeviceGetName");
  std::strncpy(name, "Fake H100", static_cast<std::size_t>(bytes));
  return Status::kSuccess;
}
FAKE_CALL cuDeviceGetUuid_v2(abi::Uuid* uuid, int) {
  FAKE_ENTER("cuDeviceGetUuid_v2");
  for (std::uint8_t i = 0; i < 16; ++i) uuid->bytes[i] = i;
  return Status::kSuccess;
}
FAKE_CALL cuDeviceGetAttribute(int* value, int which, int) {
  FAKE_ENTER("cuDeviceGetAttribute");
  *value = attribute(which);
  return Status::kSuccess;
}
FAKE_CALL cuDevicePrimaryCtxRetain(abi::ContextHandle* context, int) {
  FAKE_ENTER("cuDevicePrimaryCtxRetain");
  ++all.retained;
  *context = reinterpret_cast<abi::ContextHandle>(&all);
  return Status::kSuccess;
}
FAKE_CALL cuDevicePrimaryCtxRelease_v2(int) {
  FAKE_ENTER("cuDevicePrimaryCtxRelease_v2");
  --all.retained;
  return Status::kSuccess;
}
FAKE_CALL cuCtxSetCurrent(abi::ContextHandle) {
  FAKE_ENTER("cuCtxSetCurrent");
  return Status::kSuccess;
}
FAKE_CALL cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER("cuCtxGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;
  return Status::kSuccess;
}
FAKE_CALL cuLibraryLoadData(abi::LibraryHandle* library, const void*, int*, void**, unsigned,
                            int*, void**, unsigned) {
  FAKE_ENTER("cuLibraryLoadData");
  ++all.libraries;
  *library = reinterpret_cast<abi::LibraryHandle>(&all);
  return Status::kSuccess;
}
FAKE_CALL cuLibraryUnload(abi::LibraryHandle) {
  FAKE_ENTER("cuLibraryUnload");
  --all.libraries;
  return Status::kSuccess;
}
FAKE_CALL cuLibraryGetKernel(abi::KernelHandle* kernel, abi::LibraryHandle, const char* name) {
  FAKE_ENTER("cuLibraryGetKernel");
  auto made = std::make_unique<std::string>(name);
  *kernel = reinterpret_cast<abi::KernelHandle>(made.get());
  all.kernels[*kernel] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuKernelSetAttribute(int which, int value, abi::KernelHandle kernel, int) {
  FAKE_ENTER("cuKernelSetAttribute");
  if (value > attribute(abi::kSharedBytesPerBlock)) return Status::kInvalidValue;
  if (which == abi::kMaxDynamicSharedBytes)
    all.most_shared[kernel] = static_cast<std::size_t>(value);
  return Status::kSuccess;
}
FAKE_CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, abi::KernelHandle kernel,
                                                      int threads, std::size_t shared) {
  FAKE_ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  const auto most = all.most_shared.find(kernel);
  const std::size_t fits = most == all.most_shared.end() ? 48 << 10 : most->second;
  *blocks = shared > fits ? 0 : std::min(32, 2048 / threads);
  return Status::kSuccess;
}
FAKE_CALL cuLaunchKernel(abi::KernelHandle kernel, unsigned x, unsigned y, unsigned z, unsigned,
                         unsigned, unsigned, unsigned, abi::StreamHandle stream, void** list,
                         void**) {
  FAKE_ENTER("cuLaunchKernel");
  const std::string& name = *all.kernels.at(kernel);
  Work work = work_of(name, list);
  work.shown.name = name;
  work.shown.grid = {x, y, z};
  put(all, stream_of(all, stream), std::move(work));
  return Status::kSuccess;
}

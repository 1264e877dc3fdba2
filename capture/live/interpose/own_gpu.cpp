#include "capture/live/interpose/own_gpu.hpp"

#include "capture/live/interpose/hooks.hpp"

namespace bubblesim::capture::interpose {
namespace {

struct DeviceCalls {
  using Context = CuResult (*)(Handle*);
  using Device = CuResult (*)(int*);
  using Uuid = CuResult (*)(GpuUuid*, int);

  Context context = reinterpret_cast<Context>(driver_function("cuCtxGetCurrent"));
  Device device = reinterpret_cast<Device>(driver_function("cuCtxGetDevice"));
  Uuid uuid = newest_uuid();

  static Uuid newest_uuid() {
    void* const newer = driver_function("cuDeviceGetUuid_v2");
    return reinterpret_cast<Uuid>(newer != nullptr ? newer : driver_function("cuDeviceGetUuid"));
  }
};

const DeviceCalls& device_calls() {
  static const DeviceCalls* const found = new DeviceCalls;
  return *found;
}

/// Zeros: the driver does not say.
GpuUuid uuid_of_current(const DeviceCalls& driver) {
  int device = 0;
  GpuUuid uuid;
  const bool said = driver.device != nullptr && driver.uuid != nullptr &&
                    driver.device(&device) == kCuSuccess &&
                    driver.uuid(&uuid, device) == kCuSuccess;
  return said ? uuid : GpuUuid{};
}

/// Asked once a thread and context.
GpuUuid own_uuid() {
  static thread_local Handle known = nullptr;
  static thread_local GpuUuid uuid;
  Handle context = nullptr;
  const DeviceCalls& driver = device_calls();
  if (driver.context == nullptr || driver.context(&context) != kCuSuccess) return {};
  if (context != known) uuid = uuid_of_current(driver);
  known = context;
  return uuid;
}

}  // namespace

OwnGpu::OwnGpu(const std::string& gate, ClientId client) : client_(client) {
  auto memory = SharedSegment::open(gate, sizeof(GateSegment), "gate");
  if (memory) memory_ = std::move(*memory);
}

OwnGpu::Where OwnGpu::where() const {
  if (memory_ == nullptr) return Where::kHere;
  const GpuUuid own = own_uuid();
  if (own == GpuUuid{}) return Where::kHere;
  auto& segment = *static_cast<GateSegment*>(memory_->address());
  // A filler that finds none says it; of several at once, one does.
  const std::optional<GpuUuid> watched =
      client_ == ClientId{0} ? segment.gpu.read() : segment.gpu.read_or_set(own);
  if (!watched) return Where::kNotKnownYet;
  return *watched == own || *watched == GpuUuid{} ? Where::kHere : Where::kElsewhere;
}

}  // namespace bubblesim::capture::interpose

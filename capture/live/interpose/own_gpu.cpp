#include "capture/live/interpose/own_gpu.hpp"

#include "capture/live/interpose/hooks.hpp"

namespace bubblesim::capture::interpose {
namespace {

template <class... Parameters>
using Call = CuResult (*)(Parameters...);

/// Of the calling thread's context; zeros: the driver does not say.
GpuUuid uuid_of_current() {
  static const auto device = reinterpret_cast<Call<int*>>(driver_function("cuCtxGetDevice"));
  static void* const newer = driver_function("cuDeviceGetUuid_v2");
  static const auto uuid = reinterpret_cast<Call<GpuUuid*, int>>(
      newer != nullptr ? newer : driver_function("cuDeviceGetUuid"));
  int number = 0;
  GpuUuid found;
  const bool said = device != nullptr && uuid != nullptr && device(&number) == kCuSuccess &&
                    uuid(&found, number) == kCuSuccess;
  return said ? found : GpuUuid{};
}

/// Asked once a thread and context.
GpuUuid own_uuid() {
  static const auto get = reinterpret_cast<Call<Handle*>>(driver_function("cuCtxGetCurrent"));
  static thread_local Handle known = nullptr;
  static thread_local GpuUuid uuid;
  Handle context = nullptr;
  if (get == nullptr || get(&context) != kCuSuccess) return {};
  if (context != known) uuid = uuid_of_current();
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
  auto& gpu = static_cast<GateSegment*>(memory_->address())->gpu;
  std::optional<GpuUuid> watched = gpu.read();
  if (watched == GpuUuid{}) return Where::kHere;
  const GpuUuid own = own_uuid();
  if (own == GpuUuid{}) return Where::kHere;
  // A filler that finds none says it; of several at once, one does.
  if (!watched && client_ != ClientId{0}) watched = gpu.read_or_set(own);
  if (!watched) return Where::kNotKnownYet;
  return *watched == own ? Where::kHere : Where::kElsewhere;
}

}  // namespace bubblesim::capture::interpose

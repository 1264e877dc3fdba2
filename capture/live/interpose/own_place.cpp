#include "capture/live/interpose/own_place.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/clock/process_mark.hpp"
#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_segment.hpp"
#include "capture/live/interpose/hooks.hpp"

namespace bubblesim::capture::interpose {
namespace {

/// An exec keeps number, start and number space. Else the place may be another process's.
bool is_here(const ProcessMark& process) noexcept {
  const ProcessMark here = this_process();
  return here.start != 0 && here.space != 0 && process == here;
}

}  // namespace

bool give_up_own_place(const std::string& gate, ClientId client) noexcept try {
  const auto memory = SharedSegment::open(gate, sizeof(GateSegment), "gate");
  if (!memory) return false;
  auto& segment = *static_cast<GateSegment*>((*memory)->address());
  if (segment.magic != kGateMagic || segment.version != kGateVersion ||
      client.value >= segment.clients) {
    return false;
  }
  const GatePlace& place = segment.places[client.index()];
  if (place.state != PlaceState::kJoined || !is_here(place.process)) return false;
  leave_place(segment, client);
  return true;
} catch (...) {
  return false;
}

LiveCounts& open_counts(const std::string& folder, const std::string& client) {
  static LiveCounts* const unread = new LiveCounts;
  if (folder.empty()) return *unread;
  const int file = ::open((folder + "/client" + client).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return *unread;
  struct stat status{};
  void* mapped = MAP_FAILED;
  if (::fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(LiveCounts))) {
    mapped = ::mmap(nullptr, sizeof(LiveCounts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  return mapped == MAP_FAILED ? *unread : *static_cast<LiveCounts*>(mapped);
}

void note(const std::string& folder, const std::string& client, const std::string& what) {
  const std::string line = "client " + client + ": process " + std::to_string(::getpid()) + " (" +
                           program_invocation_short_name + ") " + what + "\n";
  int out = STDERR_FILENO;
  if (!folder.empty()) {
    out = ::open((folder + "/" + kNotesFile).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                 0600);
    if (out < 0) return;
  }
  // One write: lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written = ::write(out, line.data(), line.size());
  if (out != STDERR_FILENO) ::close(out);
}

namespace {

template <class... Parameters>
using Call = CuResult (*)(Parameters...);

/// UUID of the GPU of the calling thread's context; zeros: the driver does not tell.
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

/// Queried once for each thread and context.
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
  // If no GPU is watched yet, a filler sets its own; of several at once, one does.
  if (!watched && client_ != ClientId{0}) watched = gpu.read_or_set(own);
  if (!watched) return Where::kNotKnownYet;
  return *watched == own ? Where::kHere : Where::kElsewhere;
}

}  // namespace bubblesim::capture::interpose

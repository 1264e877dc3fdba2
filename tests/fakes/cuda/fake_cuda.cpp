#include "tests/fakes/cuda/fake_cuda.hpp"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {
namespace {

constexpr int kNotInitialised = 3;
constexpr std::uint64_t kLaunchLatency = 2000;

/// The driver's state; never destroyed, since threads run to the process's end.
struct Driver {
  std::mutex mutex;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> busy_until;
  std::map<std::uint32_t, std::uint64_t> recordings;  ///< of events: the last one's number
  std::atomic<pid_t> process{0};                      ///< that called cuInit
  std::atomic<Tracer> tracer{nullptr};
  std::atomic<std::uint32_t> correlation{0};
  std::atomic<std::uint64_t> event_sync{0};
  std::atomic<std::uint64_t> memory{0x7f0000000000};
};

Driver& driver() {
  static Driver* const happening = new Driver;
  return *happening;
}

bool usable() { return driver().process.load() == ::getpid(); }

void inject() {
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using Initialise = int (*)();
  if (auto* entry = reinterpret_cast<Initialise>(::dlsym(library, "InitializeInjection"))) entry();
}

Happening begin(What what, std::uint32_t device, std::uint32_t stream) {
  Happening happening;
  happening.what = what;
  happening.device = device;
  happening.stream = stream;
  happening.correlation = driver().correlation.fetch_add(1) + 1;
  happening.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  happening.call_start = now_ns();
  return happening;
}

/// Puts `ns` of work onto the stream, after what is there.
void put(Happening& happening, std::uint64_t ns) {
  const std::lock_guard lock(driver().mutex);
  std::uint64_t& busy = driver().busy_until[{happening.device, happening.stream}];
  happening.start = std::max(busy, happening.call_start + kLaunchLatency);
  happening.end = happening.start + ns;
  busy = happening.end;
}

int tell(Happening& happening) {
  if (happening.call_end == 0) happening.call_end = now_ns();
  if (const Tracer tracer = driver().tracer.load()) tracer(happening);
  return 0;
}

}  // namespace

}  // namespace fake

using fake::driver, fake::Happening, fake::kNotInitialised, fake::What;

FAKE_EXPORT int cuInit(unsigned) {
  pid_t none = 0;
  if (driver().process.compare_exchange_strong(none, ::getpid())) fake::inject();
  return fake::usable() ? 0 : kNotInitialised;
}

FAKE_EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

FAKE_EXPORT int fake_cuda_set_tracer(fake::Tracer tracer) {
  if (!fake::usable()) return 0;
  driver().tracer.store(tracer);
  return 1;
}

FAKE_EXPORT int fake_cuda_is_traced() { return driver().tracer.load() != nullptr ? 1 : 0; }

FAKE_EXPORT int fake_cuda_launch(const fake::Launch* launch) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kKernel, launch->device, launch->stream);
  happening.name = launch->name;
  fake::put(happening, launch->ns);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_graph_launch(const fake::Launch* node, std::size_t nodes) {
  if (!fake::usable()) return kNotInitialised;
  Happening graph = fake::begin(What::kGraphLaunch, node->device, node->stream);
  graph.call_end = fake::now_ns();
  fake::tell(graph);
  for (std::size_t i = 0; i < nodes; ++i) {
    Happening happening = graph;  // the nodes of a launch share its correlation
    happening.what = What::kGraphNode;
    happening.name = node->name;
    happening.node = node->graph_node;
    fake::put(happening, node->ns);
    fake::tell(happening);
  }
  return 0;
}

FAKE_EXPORT int fake_cuda_capture_kernel(std::uint64_t node) {
  Happening happening = fake::begin(What::kNodeCreated, 0, 0);
  happening.node = node;
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_copy_node(std::uint64_t node, std::uint64_t copy_of) {
  Happening happening = fake::begin(What::kNodeCopied, 0, 0);
  happening.node = node;
  happening.copy_of = copy_of;
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_copy(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kCopy, device, stream);
  happening.bytes = bytes;
  fake::put(happening, 1000 + bytes / 20);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_memset(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kMemset, device, stream);
  happening.bytes = bytes;
  fake::put(happening, 1000 + bytes / 1000);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_stream_sync(std::uint32_t device, std::uint32_t stream) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kStreamSync, device, stream);
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(driver().mutex);
    until = driver().busy_until[{device, stream}];
  }
  const timespec pause{0, 20'000};
  while (fake::now_ns() < until) ::nanosleep(&pause, nullptr);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_device_sync(std::uint32_t device) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kDeviceSync, device, 0);
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(driver().mutex);
    for (const auto& [stream, busy] : driver().busy_until) {
      if (stream.first == device) until = std::max(until, busy);
    }
  }
  const timespec pause{0, 20'000};
  while (fake::now_ns() < until) ::nanosleep(&pause, nullptr);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_event_record(std::uint32_t device, std::uint32_t stream,
                                       std::uint32_t event) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kEventRecord, device, stream);
  happening.event = event;
  happening.event_sync = driver().event_sync.fetch_add(1) + 1;
  fake::put(happening, 0);
  {
    const std::lock_guard lock(driver().mutex);
    driver().recordings[event] = happening.event_sync;
  }
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_stream_wait(std::uint32_t device, std::uint32_t stream,
                                      std::uint32_t event) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kStreamWait, device, stream);
  happening.event = event;
  {
    const std::lock_guard lock(driver().mutex);
    happening.event_sync = driver().recordings[event];
  }
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_stream_value(std::uint32_t stream, std::uint64_t address,
                                       std::uint32_t value, int waits) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(waits != 0 ? What::kWaitValue : What::kWriteValue, 0, stream);
  happening.address = address;
  happening.bytes = value;
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_malloc(std::uint64_t bytes, std::uint64_t* address) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kAlloc, 0, 0);
  happening.bytes = bytes;
  happening.address = *address = driver().memory.fetch_add(bytes);
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_free(std::uint64_t address) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kFree, 0, 0);
  happening.address = address;
  return fake::tell(happening);
}

FAKE_EXPORT int fake_cuda_destroy_context(std::uint32_t device) {
  if (!fake::usable()) return kNotInitialised;
  Happening happening = fake::begin(What::kContextEnds, device, 0);
  return fake::tell(happening);
}

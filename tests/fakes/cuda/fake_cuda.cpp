#include "tests/fakes/cuda/fake_cuda.hpp"

#include <algorithm>
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

/// A call: `work` fills in what happens.
template <class Work>
int call(What what, std::uint32_t device, std::uint32_t stream, Work work) {
  if (!usable()) return kNotInitialised;
  Happening happening = begin(what, device, stream);
  work(happening);
  return tell(happening);
}

/// Waits for those streams of the device that `is_one` says.
template <class IsOne>
void wait_for(std::uint32_t device, IsOne is_one) {
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(driver().mutex);
    for (const auto& [place, busy] : driver().busy_until) {
      if (place.first == device && is_one(place.second)) until = std::max(until, busy);
    }
  }
  const timespec pause{0, 20'000};
  while (now_ns() < until) ::nanosleep(&pause, nullptr);
}

}  // namespace

}  // namespace fake

using fake::call, fake::driver, fake::Happening, fake::kNotInitialised, fake::What;

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
  return call(What::kKernel, launch->device, launch->stream, [&](Happening& happening) {
    happening.name = launch->name;
    fake::put(happening, launch->ns);
  });
}

FAKE_EXPORT int fake_cuda_graph_launch(const fake::Launch* node, std::size_t nodes) {
  Happening graph;
  const int failed = call(What::kGraphLaunch, node->device, node->stream, [&](Happening& launch) {
    launch.call_end = fake::now_ns();
    graph = launch;
  });
  for (std::size_t i = 0; failed == 0 && i < nodes; ++i) {
    Happening happening = graph;  // the nodes of a launch share its correlation
    happening.what = What::kGraphNode;
    happening.name = node->name;
    happening.node = node->graph_node;
    fake::put(happening, node->ns);
    fake::tell(happening);
  }
  return failed;
}

FAKE_EXPORT int fake_cuda_capture_kernel(std::uint64_t node) {
  return call(What::kNodeCreated, 0, 0, [&](Happening& happening) { happening.node = node; });
}

FAKE_EXPORT int fake_cuda_copy_node(std::uint64_t node, std::uint64_t copy_of) {
  return call(What::kNodeCopied, 0, 0, [&](Happening& happening) {
    happening.node = node;
    happening.copy_of = copy_of;
  });
}

FAKE_EXPORT int fake_cuda_copy(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes) {
  return call(What::kCopy, device, stream, [&](Happening& happening) {
    happening.bytes = bytes;
    fake::put(happening, 1000 + bytes / 20);
  });
}

FAKE_EXPORT int fake_cuda_memset(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes) {
  return call(What::kMemset, device, stream, [&](Happening& happening) {
    happening.bytes = bytes;
    fake::put(happening, 1000 + bytes / 1000);
  });
}

FAKE_EXPORT int fake_cuda_stream_sync(std::uint32_t device, std::uint32_t stream) {
  return call(What::kStreamSync, device, stream, [&](Happening&) {
    fake::wait_for(device, [stream](std::uint32_t one) { return one == stream; });
  });
}

FAKE_EXPORT int fake_cuda_device_sync(std::uint32_t device) {
  return call(What::kDeviceSync, device, 0, [&](Happening&) {
    fake::wait_for(device, [](std::uint32_t) { return true; });
  });
}

FAKE_EXPORT int fake_cuda_event_record(std::uint32_t device, std::uint32_t stream,
                                       std::uint32_t event) {
  return call(What::kEventRecord, device, stream, [&](Happening& happening) {
    happening.event = event;
    happening.event_sync = driver().event_sync.fetch_add(1) + 1;
    fake::put(happening, 0);
    const std::lock_guard lock(driver().mutex);
    driver().recordings[event] = happening.event_sync;
  });
}

FAKE_EXPORT int fake_cuda_stream_wait(std::uint32_t device, std::uint32_t stream,
                                      std::uint32_t event) {
  return call(What::kStreamWait, device, stream, [&](Happening& happening) {
    happening.event = event;
    const std::lock_guard lock(driver().mutex);
    happening.event_sync = driver().recordings[event];
  });
}

FAKE_EXPORT int fake_cuda_stream_value(std::uint32_t stream, std::uint64_t address,
                                       std::uint32_t value, int waits) {
  const What what = waits != 0 ? What::kWaitValue : What::kWriteValue;
  return call(what, 0, stream, [&](Happening& happening) {
    happening.address = address;
    happening.bytes = value;
  });
}

FAKE_EXPORT int fake_cuda_malloc(std::uint64_t bytes, std::uint64_t* address) {
  return call(What::kAlloc, 0, 0, [&](Happening& happening) {
    happening.bytes = bytes;
    happening.address = *address = driver().memory.fetch_add(bytes);
  });
}

FAKE_EXPORT int fake_cuda_free(std::uint64_t address) {
  return call(What::kFree, 0, 0, [&](Happening& happening) { happening.address = address; });
}

FAKE_EXPORT int fake_cuda_destroy_context(std::uint32_t device) {
  return call(What::kContextEnds, device, 0, [](Happening&) {});
}

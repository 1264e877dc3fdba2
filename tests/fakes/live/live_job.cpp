// A program that launches on the fake driver, which it finds by the route that its first argument
// names; the others say what it does, in order:
//   launch:N own:N configured:N cooperative:N copy:N memset:N   so many calls
//   nccl:N custom:N  kernels of NCCL, of vLLM's own all-reduce
//   graph:N          makes the graph there is, launches it N times
//   capture:N        launches N times into a stream that captures
//   pace:N           launches N times, 1 ms apart; until it is killed if N is 0
//   iterations:N     N iterations of one launch, marked
//   fork:N           a child launches N times; its exit code is added to ours
//   thread:N         another thread launches N times; nobody waits for it
//   late:N           N launches when static objects are destroyed
//   reopen           closes the driver and opens it again; exit code 93 if it was gone between
//   exec             becomes another process that does the rest
//   clear            its environment
//   gpu:N            the context of device N is the current one
//   destroy reset    the context, the device's primary context
//   say:TEXT read    a line on standard output; waits for one on standard input
//   sleep:MS exit:N kill
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "capture/live/interpose/driver_types.hpp"

using namespace bubblesim::capture::interpose;

using LaunchCall = int (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, Stream, void**, void**);
using CooperativeCall = int (*)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, Stream, void**);

#ifdef LIVE_JOB_LINKED
extern "C" {
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**);
int cuLaunchKernel_ptsz(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, Stream, void**, void**);
int cuMemcpyHtoDAsync_v2(Address, const void*, size_t, Stream);
}
#endif

namespace {

constexpr Handle kFunction = nullptr;

struct Route {
  std::string name;
  void* library = nullptr;

  void* by_request(const char* lookup, const char* api, bool own, bool status) const {
    void* const found = ::dlsym(library, lookup);
    if (found == nullptr) return nullptr;
    void* function = nullptr;
    const std::uint64_t flags = own ? kPerThreadStreams : 0;
    int symbol_status = -1;
    if (status) {
      using V2 = int (*)(const char*, void**, int, std::uint64_t, int*);
      reinterpret_cast<V2>(found)(api, &function, 13000, flags, &symbol_status);
      if (symbol_status != 0) return nullptr;
    } else {
      using V1 = int (*)(const char*, void**, int, std::uint64_t);
      if (reinterpret_cast<V1>(found)(api, &function, 11080, flags) != 0) return nullptr;
    }
    return function;
  }

  /// cuGetProcAddress by way of itself.
  void* by_chain(const char* api, bool own) const {
    using V2 = int (*)(const char*, void**, int, std::uint64_t, int*);
    void* const first = ::dlsym(library, "cuGetProcAddress_v2");
    void *second = nullptr, *function = nullptr;
    int status = -1;
    if (first == nullptr) return nullptr;
    reinterpret_cast<V2>(first)("cuGetProcAddress", &second, 12000, 0, &status);
    if (second == nullptr) return nullptr;
    reinterpret_cast<V2>(second)(api, &function, 13000, own ? kPerThreadStreams : 0, &status);
    return function;
  }

  void* find(const char* api, const char* version = "", bool own = false) const {
    const std::string symbol = std::string(api) + version + (own ? "_ptsz" : "");
    if (name == "dlsym") return ::dlsym(library, symbol.c_str());
    if (name == "default") return ::dlsym(RTLD_DEFAULT, symbol.c_str());
    if (name == "v1") return by_request("cuGetProcAddress", api, own, false);
    if (name == "v2") return by_request("cuGetProcAddress_v2", api, own, true);
    if (name == "chain") return by_chain(api, own);
#ifdef LIVE_JOB_LINKED
    if (symbol == "cuLaunchKernel") return reinterpret_cast<void*>(&cuLaunchKernel);
    if (symbol == "cuLaunchKernel_ptsz") return reinterpret_cast<void*>(&cuLaunchKernel_ptsz);
    if (symbol == "cuMemcpyHtoDAsync_v2") return reinterpret_cast<void*>(&cuMemcpyHtoDAsync_v2);
#endif
    return ::dlsym(RTLD_DEFAULT, symbol.c_str());
  }

  template <class Function>
  Function get(const char* api, const char* version = "", bool own = false) const {
    void* const found = find(api, version, own);
    if (found == nullptr) {
      std::fprintf(stderr, "no %s\n", api);
      std::exit(90);
    }
    return reinterpret_cast<Function>(found);
  }
};

// Of two blocks of 32 threads.
void launch(const Route& route, bool own, Handle function = kFunction) {
  route.get<LaunchCall>("cuLaunchKernel", "", own)(function, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                                                   nullptr);
}

void graph(const Route& route, int times) {
  using Instantiate = int (*)(Handle*, Handle, unsigned long long);
  using Launch = int (*)(Handle, Stream);
  Handle executable = nullptr;
  route.get<Instantiate>("cuGraphInstantiateWithFlags")(&executable, nullptr, 0);
  for (int i = 0; i < times; ++i) route.get<Launch>("cuGraphLaunch")(executable, nullptr);
}

void capture(const Route& route, int times) {
  const Stream stream = reinterpret_cast<Stream>(0x77);
  reinterpret_cast<int (*)(Stream, int)>(::dlsym(route.library, "cuStreamBeginCapture_v2"))(stream,
                                                                                            0);
  const auto call = route.get<LaunchCall>("cuLaunchKernel");
  for (int i = 0; i < times; ++i) call(kFunction, 2, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
  Handle made = nullptr;
  reinterpret_cast<int (*)(Stream, Handle*)>(::dlsym(route.library, "cuStreamEndCapture"))(stream,
                                                                                           &made);
}

void one_call(const Route& route, const std::string& verb) {
  using Copy = int (*)(Address, const void*, size_t, Stream);
  using Memset = int (*)(Address, unsigned char, size_t, Stream);
  using Configured = int (*)(const LaunchConfig*, Handle, void**, void**);
  if (verb == "launch") launch(route, false);
  if (verb == "own") launch(route, true);
  if (verb == "nccl") launch(route, false, reinterpret_cast<Handle>(0xCC0));
  if (verb == "custom") launch(route, false, reinterpret_cast<Handle>(0xCD0));
  if (verb == "copy") route.get<Copy>("cuMemcpyHtoDAsync", "_v2")(0, nullptr, 64, nullptr);
  if (verb == "memset") route.get<Memset>("cuMemsetD8Async")(0, 0, 64, nullptr);
  if (verb == "configured") {
    const LaunchConfig config{{3, 2, 1}, {64, 2, 1}, 0, nullptr, nullptr, 0};
    route.get<Configured>("cuLaunchKernelEx")(&config, kFunction, nullptr, nullptr);
  }
  if (verb == "cooperative") {
    route.get<CooperativeCall>("cuLaunchCooperativeKernel")(kFunction, 5, 1, 1, 32, 1, 1, 0,
                                                            nullptr, nullptr);
  }
}

void iterations(const Route& route, int times) {
  const auto mark = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "bubblesim_iteration"));
  if (mark != nullptr) mark();
  for (int i = 0; i < times; ++i) {
    launch(route, false);
    if (mark != nullptr) mark();
  }
}

int fork_and_launch(const Route& route, int times) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < times; ++i) launch(route, false);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 91;
}

void pause_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void pace(const Route& route, int times) {
  for (int i = 0; times == 0 || i < times; ++i) {
    launch(route, false);
    pause_ms(1);
  }
}

/// Destroyed after main.
struct Late {
  const Route* route = nullptr;
  int times = 0;
  ~Late() {
    for (int i = 0; i < times; ++i) launch(*route, false);
  }
} late;

void launch_aside(const Route& route, int times) {
  std::thread([&route, times] {
    for (int i = 0; i < times; ++i) launch(route, false);
  }).detach();
}

int reopen(Route& route) {
  ::dlclose(route.library);
  void* const there = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  route.library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return there != nullptr ? 0 : 93;
}

void become(char** argv, int done) {
  std::vector<char*> words{argv[0], argv[1]};
  for (char** word = argv + done; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
  std::exit(92);
}

int perform(Route& route, const std::string& verb, const std::string& value) {
  const int number = std::atoi(value.c_str());
  if (verb == "graph") graph(route, number);
  if (verb == "capture") capture(route, number);
  if (verb == "pace") pace(route, number);
  if (verb == "iterations") iterations(route, number);
  if (verb == "sleep") pause_ms(number);
  if (verb == "exit") std::exit(number);
  if (verb == "kill") ::raise(SIGKILL);
  if (verb == "say") std::printf("%s\n", value.c_str()), std::fflush(stdout);
  if (verb == "read") static_cast<void>(std::getchar());
  if (verb == "thread") launch_aside(route, number);
  if (verb == "late") late.route = &route, late.times = number;
  if (verb == "clear") ::clearenv();
  if (verb == "gpu") {
    const auto context = reinterpret_cast<Handle>(std::uintptr_t{0xC0} + 0x100U * number);
    reinterpret_cast<int (*)(Handle)>(::dlsym(route.library, "cuCtxSetCurrent"))(context);
    return 0;
  }
  if (verb == "destroy") {
    const auto context = reinterpret_cast<Handle>(0xC0);
    route.get<int (*)(Handle)>("cuCtxDestroy", "_v2")(context);
  }
  if (verb == "reset") route.get<int (*)(int)>("cuDevicePrimaryCtxReset", "_v2")(0);
  if (verb == "reopen") return reopen(route);
  if (verb == "fork") return fork_and_launch(route, number);
  for (int i = 0; i < number; ++i) one_call(route, verb);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  static Route& route = *new Route{argv[1]};  // for threads and destructors
  const int scope = route.name == "default" ? RTLD_GLOBAL : RTLD_LOCAL;
  route.library = ::dlopen("libcuda.so.1", RTLD_NOW | scope);
  int code = 0;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t colon = word.find(':');
    if (word == "exec") become(argv, i + 1);
    code += perform(route, word.substr(0, colon),
                    colon == std::string::npos ? "" : word.substr(colon + 1));
  }
  return code;
}

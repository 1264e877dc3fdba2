#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "capture/record/nccl/profiler_abi.hpp"
#include "capture/record/nvtx/nvtx_abi.hpp"
#include "tests/fakes/cuda/fake_cuda.hpp"
#include "tests/fakes/job/fake_verbs.hpp"
#include "tests/fakes/nvtx/nvtx_tables.hpp"

namespace fake {
namespace {

namespace abi = bubblesim::capture::nvtx_abi;
using bubblesim::capture::NvtxTables;

void attach() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using Initialise = int (*)(abi::GetExportTable);
  auto* entry = reinterpret_cast<Initialise>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (entry != nullptr) entry(&NvtxTables::export_table);
}

/// NVTX as it is compiled into a library of a job: it loads NVTX_INJECTION64_PATH at its first use
/// and calls the functions that the tool has put into its table. Without a tool, it has none.
const NvtxTables& nvtx() {
  static NvtxTables tables;
  [[maybe_unused]] static const bool attached = (attach(), true);
  return tables;
}

constexpr int kVerbFailed = 10;
constexpr int kTimeOut = 11;
constexpr int kUnknownVerb = 12;

void sleep_us(std::uint64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

int launch(std::uint64_t count, Launch what = {}) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const int code = fake_cuda_launch(&what); code != 0) return code;
    // Durations that differ, as real ones do: equal ones take no room in a file.
    what.ns = 1000 + (what.ns * 25173 + 13849) % 4096;
  }
  return 0;
}

int threads(std::uint64_t count, std::uint64_t launches) {
  std::vector<std::thread> running;
  for (std::uint64_t i = 0; i < count; ++i) {
    running.emplace_back([i, launches] {
      const auto number = static_cast<std::uint32_t>(i);
      (void)launch(launches, {.device = number % 2, .stream = 7 + number / 2, .name = "threaded"});
    });
  }
  for (std::thread& worker : running) worker.join();
  return 0;
}

int mixed(std::uint64_t count) {
  int code = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t address = 0;
    code |= fake_cuda_malloc(4096, &address);
    code |= fake_cuda_copy(0, 7, 4096);
    code |= fake_cuda_memset(0, 7, 4096);
    code |= fake_cuda_event_record(0, 7, 1);
    code |= fake_cuda_stream_wait(0, 8, 1);
    code |= launch(1, {.stream = 8, .name = "after"});
    code |= fake_cuda_stream_sync(0, 8);
    code |= fake_cuda_free(address);
  }
  return code == 0 ? 0 : kVerbFailed;
}

const bubblesim::capture::nccl_abi::ProfilerV5* nccl_profiler() {
  void* const library = ::dlopen(std::getenv("NCCL_PROFILER_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  using bubblesim::capture::nccl_abi::ProfilerV5;
  return static_cast<const ProfilerV5*>(::dlsym(library, "ncclProfiler_v5"));
}

/// As NCCL 2.28: the call is announced, then its kernel is captured. Nodes 11 and 12 are copied to
/// 21 and 22 when the graph is instantiated.
int nccl_graph(std::uint64_t launches) {
  namespace nccl = bubblesim::capture::nccl_abi;
  const nccl::ProfilerV5* const profiler = nccl_profiler();
  if (profiler == nullptr) return kVerbFailed;
  void* context = nullptr;
  void* handle = nullptr;
  int mask = 0;
  profiler->init(&context, 0xABCD, &mask, "tp", 1, 8, 2, nullptr);
  nccl::DescriptorV5 call{.type = nccl::kCollApi, .parent = nullptr, .rank = 2, .coll = {}};
  call.coll_api = {"AllReduce", 1000, "ncclFloat32", 0, nullptr, true};
  profiler->start_event(context, &handle, &call);
  int code = fake_cuda_capture_kernel(11) | fake_cuda_capture_kernel(12);
  code |= fake_cuda_copy_node(21, 11) | fake_cuda_copy_node(22, 12);
  const Launch reduce{.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .graph_node = 21};
  const Launch other{.name = "gemm", .graph_node = 22};
  for (std::uint64_t i = 0; i < launches; ++i) {
    code |= fake_cuda_graph_launch(&reduce, 1) | fake_cuda_graph_launch(&other, 1);
  }
  profiler->finalize(context);
  return code == 0 ? 0 : kVerbFailed;
}

/// As NCCL 2.28, of calls that no graph captures.
int nccl(std::uint64_t count, std::uint64_t us) {
  namespace abi = bubblesim::capture::nccl_abi;
  const abi::ProfilerV5* const profiler = nccl_profiler();
  if (profiler == nullptr) return kVerbFailed;
  void *small = nullptr, *large = nullptr, *handle = nullptr;
  int mask = 0, code = 0;
  profiler->init(&small, 0x1234, &mask, "dp", 1, 4, 1, nullptr);
  profiler->init(&large, 0xABCD, &mask, "world", 1, 8, 2, nullptr);
  abi::DescriptorV5 call{.type = abi::kCollApi, .parent = nullptr, .rank = 2, .coll = {}};
  call.coll_api = {"AllReduce", 1000, "ncclFloat32", 0, nullptr, false};
  for (std::uint64_t i = 0; i < count && code == 0; ++i) {
    for (void* const communicator : {small, small, large}) {
      profiler->start_event(communicator, &handle, &call);
      code |= launch(1, {.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
    }
    sleep_us(us);
  }
  profiler->finalize(small), profiler->finalize(large);
  return code == 0 ? 0 : kVerbFailed;
}

/// Every second wait is made before its write, as a pipeline's receiver does.
int values(std::uint64_t count) {
  constexpr std::uint64_t kAddress = 0x7f0000001000;
  int code = 0;
  for (std::uint32_t i = 1; i <= count; ++i) {
    const bool waits_first = i % 2 == 0;
    if (waits_first) code |= fake_cuda_stream_value(8, kAddress, i, 1);
    code |= launch(1, {.stream = 7, .name = "first"});
    code |= fake_cuda_stream_value(7, kAddress, i, 0);
    if (!waits_first) code |= fake_cuda_stream_value(8, kAddress, i, 1);
    code |= launch(1, {.stream = 8, .name = "then"});
  }
  return code == 0 ? 0 : kVerbFailed;
}

int gpus(std::uint64_t count) {
  int code = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    code |= launch(1, {.device = 1, .name = "short", .ns = 20'000});
    code |= launch(1, {.device = 0, .name = "long", .ns = 300'000});
    code |= fake_cuda_device_sync(1);
  }
  return code == 0 ? 0 : kVerbFailed;
}

int iterations(std::uint64_t count, std::uint64_t kernels) {
  auto* const push = nvtx().at<int(const char*)>(abi::Core::kRangePushA);
  auto* const pop = nvtx().at<int()>(abi::Core::kRangePop);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (push != nullptr) push(("iteration " + std::to_string(i)).c_str());
    if (const int code = launch(kernels); code != 0) return code;
    sleep_us(2000);
    if (pop != nullptr) pop();
  }
  return 0;
}

int two_markers(std::uint64_t count) {
  std::thread second([count] { (void)iterations(count, 1); });
  const int code = iterations(count, 1);
  second.join();
  sleep_us(100'000);
  return code;
}

int wait_traced(bool wanted, std::uint64_t ms) {
  for (std::uint64_t i = 0; i < ms; ++i) {
    if ((fake_cuda_is_traced() != 0) == wanted) return 0;
    sleep_us(1000);
  }
  return kTimeOut;
}

int load_cupti(const std::string& folder) {
  return ::dlopen((folder + "/libcupti.so.13").c_str(), RTLD_NOW | RTLD_LOCAL) ? 0 : kVerbFailed;
}

int talk(const Verb& verb) {
  if (verb.name == "say") {
    const std::string line = verb.text(0) + "\n";
    return ::write(STDOUT_FILENO, line.data(), line.size()) > 0 ? 0 : kVerbFailed;
  }
  for (char letter = 0; letter != '\n';) {
    if (::read(STDIN_FILENO, &letter, 1) <= 0) return kVerbFailed;
  }
  return 0;
}

}  // namespace

std::uint64_t Verb::number(std::size_t i, std::uint64_t otherwise) const {
  return i < arguments.size() ? std::stoull(arguments[i]) : otherwise;
}

std::string Verb::text(std::size_t i) const { return i < arguments.size() ? arguments[i] : ""; }

Verb parse_verb(const std::string& text) {
  std::istringstream in(text);
  Verb verb;
  std::getline(in, verb.name, ':');
  for (std::string part; std::getline(in, part, ':');) verb.arguments.push_back(part);
  return verb;
}

int do_verb(const Verb& verb) {
  bool known = true;
  if (const int code = do_process_verb(verb, known); known) return code;
  const std::string& name = verb.name;
  if (name == "init") return cuInit(0);
  if (name == "cupti") return load_cupti(verb.text(0));
  if (name == "launch") return launch(verb.number(0, 1));
  if (name == "threads") return threads(verb.number(0), verb.number(1));
  if (name == "mixed") return mixed(verb.number(0, 1));
  if (name == "nccl_graph") return nccl_graph(verb.number(0, 1));
  if (name == "nccl") return nccl(verb.number(0), verb.number(1));
  if (name == "values") return values(verb.number(0, 1));
  if (name == "gpus") return gpus(verb.number(0, 1));
  if (name == "mark_iterations") return iterations(verb.number(0), verb.number(1));
  if (name == "two_markers") return two_markers(verb.number(0));
  if (name == "destroy") return fake_cuda_destroy_context(0);
  if (name == "sleep") return sleep_us(verb.number(0) * 1000), 0;
  if (name == "traced") return wait_traced(true, verb.number(0, 20000));
  if (name == "untraced") return wait_traced(false, verb.number(0, 20000));
  if (name == "say" || name == "hear") return talk(verb);
  if (name == "rate") {
    for (std::uint64_t i = 0; i < verb.number(0); ++i) {
      if (const int code = launch(1); code != 0) return code;
      sleep_us(verb.number(1));
    }
    return 0;
  }
  if (name == "graph") {
    const Launch node{.name = "node"};
    for (std::uint64_t i = 0; i < verb.number(0); ++i) {
      if (const int code = fake_cuda_graph_launch(&node, verb.number(1)); code != 0) return code;
    }
    return 0;
  }
  std::fprintf(stderr, "fake_job: no verb '%s'\n", name.c_str());
  return kUnknownVerb;
}

}  // namespace fake

// Graphs: counted when they are instantiated, gated when they are launched.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/driver_types.hpp"
#include "capture/live/interpose/hooks.hpp"

namespace bubblesim::capture::interpose {
namespace {

// ---- The work of a launch of each instantiated graph.

struct GraphSize {
  std::uint32_t kernels = 0;  ///< kernel nodes, those of child graphs included
  std::uint32_t copies = 0;   ///< copies and memsets
  std::uint64_t blocks = 0;   ///< of all kernel nodes
  std::uint32_t threads_per_block = 0;  ///< of the first kernel
};

using GetNodes = CuResult (*)(Handle, Handle*, std::size_t*);
using GetType = CuResult (*)(Handle, int*);
using GetKernel = CuResult (*)(Handle, KernelNode*);
using GetChild = CuResult (*)(Handle, Handle*);

constexpr int kDeepest = 8;  // child graphs within child graphs

struct GraphCalls {
  GetNodes nodes = reinterpret_cast<GetNodes>(driver_function("cuGraphGetNodes"));
  GetType type = reinterpret_cast<GetType>(driver_function("cuGraphNodeGetType"));
  GetKernel kernel = kernel_call();
  GetChild child = reinterpret_cast<GetChild>(driver_function("cuGraphChildGraphNodeGetGraph"));

  static GetKernel kernel_call() {
    void* const newer = driver_function("cuGraphKernelNodeGetParams_v2");
    return reinterpret_cast<GetKernel>(
        newer != nullptr ? newer : driver_function("cuGraphKernelNodeGetParams"));
  }
};

void add_kernel(const GraphCalls& calls, Handle node, GraphSize& size) {
  ++size.kernels;
  KernelNode kernel{};
  if (calls.kernel == nullptr || calls.kernel(node, &kernel) != kCuSuccess) return;
  size.blocks += std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
  if (size.threads_per_block == 0) {
    size.threads_per_block = kernel.block[0] * kernel.block[1] * kernel.block[2];
  }
}

void add_graph(const GraphCalls& calls, Handle graph, int depth, GraphSize& size) {
  std::size_t count = 0;
  if (calls.nodes == nullptr || calls.type == nullptr || depth > kDeepest ||
      calls.nodes(graph, nullptr, &count) != kCuSuccess) {
    return;
  }
  std::vector<Handle> nodes(count);
  if (count == 0 || calls.nodes(graph, nodes.data(), &count) != kCuSuccess) return;
  for (Handle node : nodes) {
    int type = -1;
    if (calls.type(node, &type) != kCuSuccess) continue;
    Handle child = nullptr;
    switch (static_cast<GraphNodeType>(type)) {
      case GraphNodeType::kKernel: add_kernel(calls, node, size); break;
      case GraphNodeType::kCopy:
      case GraphNodeType::kMemset: ++size.copies; break;
      case GraphNodeType::kChildGraph:
        if (calls.child != nullptr && calls.child(node, &child) == kCuSuccess) {
          add_graph(calls, child, depth + 1, size);
        }
        break;
    }
  }
}

/// Never destroyed: programs launch until their last moment.
struct Remembered {
  std::mutex mutex;
  std::unordered_map<Handle, GraphSize> sizes;
};
std::atomic<Remembered*> remembered_so_far{nullptr};

// A forked child has no graphs; its parent's lock may be held, by a thread that the child lacks.
void forget_in_child() noexcept { remembered_so_far.store(new Remembered); }

Remembered& remembered() {
  static const bool made = [] {
    remembered_so_far.store(new Remembered);
    return ::pthread_atfork(nullptr, nullptr, &forget_in_child) == 0;
  }();
  static_cast<void>(made);
  return *remembered_so_far.load();
}

// The size of a graph as the driver describes it; empty if it does not.
GraphSize size_of_graph(Handle graph) noexcept try {
  static const GraphCalls* const calls = new GraphCalls;
  GraphSize size;
  add_graph(*calls, graph, 0, size);
  return size;
} catch (...) {
  return {};
}

// Sizes are kept by executable graph. Nodes that are switched off or changed after the
// instantiation, and bodies of conditional nodes, are not followed. An unknown graph counts as one
// kernel.
void remember_graph(Handle executable, const GraphSize& size) noexcept try {
  const std::lock_guard lock(remembered().mutex);
  remembered().sizes[executable] = size;
} catch (...) {
}

void forget_graph(Handle executable) noexcept {
  const std::lock_guard lock(remembered().mutex);
  remembered().sizes.erase(executable);
}

GraphSize remembered_graph(Handle executable) noexcept {
  const std::lock_guard lock(remembered().mutex);
  const auto found = remembered().sizes.find(executable);
  return found == remembered().sizes.end() ? GraphSize{.kernels = 1} : found->second;
}

using policy::LaunchInfo;
using program::WorkKind;

void describe(LaunchInfo& info, Handle executable) {
  const GraphSize size = remembered_graph(executable);
  info.kind = size.kernels > 0 ? WorkKind::kKernel : WorkKind::kCopy;
  info.operations = std::max(1U, size.kernels > 0 ? size.kernels : size.copies);
  info.blocks = size.blocks;
  info.threads_per_block = size.threads_per_block;
  info.kernel = reinterpret_cast<std::uintptr_t>(executable);
}

void count(CuResult result, Handle* executable, Handle graph) noexcept {
  if (result != kCuSuccess || executable == nullptr || !gate_is_wanted()) return;
  const Inside inside;
  remember_graph(*executable, size_of_graph(graph));
}

}  // namespace

#define BUBBLESIM_UNPACK(...) __VA_ARGS__
#define BUBBLESIM_FORM(symbol, per_thread)                                                        \
  BUBBLESIM_GATE_EXPORT CuResult symbol(Handle g, Stream s) noexcept {                            \
    return pass(                                                                                  \
        s, per_thread, [&](LaunchInfo& info) { describe(info, g); },                              \
        [&] { return CallOf<decltype(symbol)>::real(Slot::symbol, g, s); });                      \
  }
BUBBLESIM_FORM(cuGraphLaunch, false)
BUBBLESIM_FORM(cuGraphLaunch_ptsz, true)
#undef BUBBLESIM_FORM

#define BUBBLESIM_FORM(symbol, api, since, per_thread, params, args)                              \
  BUBBLESIM_GATE_EXPORT CuResult symbol params noexcept {                                         \
    const CuResult result =                                                                       \
        CallOf<decltype(symbol)>::real(Slot::symbol, BUBBLESIM_UNPACK args);                      \
    count(result, x, g);                                                                          \
    return result;                                                                                \
  }
BUBBLESIM_GATE_INSTANTIATIONS(BUBBLESIM_FORM)
#undef BUBBLESIM_FORM
#undef BUBBLESIM_UNPACK

BUBBLESIM_GATE_EXPORT CuResult cuGraphExecDestroy(Handle x) noexcept {
  // First: once destroyed, the handle may become another graph's.
  if (gate_is_wanted()) forget_graph(x);
  return CallOf<decltype(cuGraphExecDestroy)>::real(Slot::cuGraphExecDestroy, x);
}

}  // namespace bubblesim::capture::interpose

#include "capture/live/interpose/graph_sizes.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture/live/interpose/hooks.hpp"

namespace bubblesim::capture::interpose {
namespace {

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

}  // namespace

GraphSize size_of_graph(Handle graph) noexcept try {
  static const GraphCalls* const calls = new GraphCalls;
  GraphSize size;
  add_graph(*calls, graph, 0, size);
  return size;
} catch (...) {
  return {};
}

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

}  // namespace bubblesim::capture::interpose

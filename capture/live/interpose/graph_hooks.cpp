// Graphs: counted when they are instantiated, gated when they are launched.
#include <algorithm>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/graph_sizes.hpp"

namespace bubblesim::capture::interpose {
namespace {

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
  // First: once destroyed, its handle may be another graph's.
  if (gate_is_wanted()) forget_graph(x);
  return CallOf<decltype(cuGraphExecDestroy)>::real(Slot::cuGraphExecDestroy, x);
}

}  // namespace bubblesim::capture::interpose

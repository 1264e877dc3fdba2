// Kernels, copies and memsets on their way to the driver.
#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/kernel_names.hpp"

namespace bubblesim::capture::interpose {
namespace {

using policy::LaunchInfo;
using program::WorkKind;

std::uint64_t product(unsigned x, unsigned y, unsigned z) {
  return std::uint64_t{x} * y * z;
}

void describe(LaunchInfo& info, Handle function, std::uint64_t blocks, std::uint64_t threads) {
  info.kind = is_collective(function) ? WorkKind::kCollective : WorkKind::kKernel;
  info.blocks = blocks;
  info.threads_per_block = static_cast<std::uint32_t>(threads);
  info.kernel = reinterpret_cast<std::uintptr_t>(function);
}

using StreamCapturing = CuResult (*)(Stream, int*);

StreamCapturing capture_query(bool per_thread) noexcept {
  static std::atomic<void*> found[2];
  std::atomic<void*>& known = found[per_thread ? 1 : 0];
  if (known.load(std::memory_order_acquire) == nullptr) {
    known.store(driver_function(per_thread ? "cuStreamIsCapturing_ptsz" : "cuStreamIsCapturing"),
                std::memory_order_release);
  }
  return reinterpret_cast<StreamCapturing>(known.load(std::memory_order_acquire));
}

}  // namespace

thread_local int Inside::depth = 0;

bool is_captured(Stream stream, bool per_thread) noexcept {
  const StreamCapturing query = capture_query(per_thread);
  int status = 0;  // CU_STREAM_CAPTURE_STATUS_NONE
  if (query == nullptr) return false;
  // An error is one that the launch itself is about to get, and to report.
  return query(stream, &status) != kCuSuccess || status != 0;
}

#define BUBBLESIM_FORM(symbol, per_thread, params, args)                                          \
  BUBBLESIM_GATE_EXPORT CuResult symbol params noexcept {                                         \
    return pass(                                                                                  \
        s, per_thread,                                                                            \
        [&](LaunchInfo& info) { describe(info, f, product(gx, gy, gz), product(bx, by, bz)); },   \
        [&] { return CallOf<decltype(symbol)>::real(Slot::symbol, BUBBLESIM_UNPACK args); });      \
  }
#define BUBBLESIM_UNPACK(...) __VA_ARGS__
#define BUBBLESIM_BOTH(base, version, api, since, kind, params, args) \
  BUBBLESIM_FORM(base##version, false, params, args)                  \
  BUBBLESIM_FORM(base##version##_ptsz, true, params, args)
BUBBLESIM_GATE_LAUNCHES(BUBBLESIM_BOTH)
#undef BUBBLESIM_FORM

#define BUBBLESIM_FORM(symbol, per_thread, params, args)                                          \
  BUBBLESIM_GATE_EXPORT CuResult symbol params noexcept {                                         \
    if (c == nullptr) {                                                                           \
      return CallOf<decltype(symbol)>::real(Slot::symbol, BUBBLESIM_UNPACK args);                 \
    }                                                                                             \
    return pass(                                                                                  \
        c->stream, per_thread,                                                                    \
        [&](LaunchInfo& info) {                                                                   \
          describe(info, f, product(c->grid[0], c->grid[1], c->grid[2]),                          \
                   product(c->block[0], c->block[1], c->block[2]));                               \
        },                                                                                        \
        [&] { return CallOf<decltype(symbol)>::real(Slot::symbol, BUBBLESIM_UNPACK args); });      \
  }
BUBBLESIM_GATE_CONFIGURED_LAUNCHES(BUBBLESIM_BOTH)
#undef BUBBLESIM_FORM
#undef BUBBLESIM_BOTH

#define BUBBLESIM_FORM(symbol, per_thread, is, params, args)                                      \
  BUBBLESIM_GATE_EXPORT CuResult symbol params noexcept {                                         \
    return pass(                                                                                  \
        s, per_thread, [](LaunchInfo& info) { info.kind = WorkKind::is; },                      \
        [&] { return CallOf<decltype(symbol)>::real(Slot::symbol, BUBBLESIM_UNPACK args); });      \
  }
#define BUBBLESIM_BOTH(base, version, api, since, kind, params, args) \
  BUBBLESIM_FORM(base##version, false, kind, params, args)            \
  BUBBLESIM_FORM(base##version##_ptsz, true, kind, params, args)
BUBBLESIM_GATE_COPIES(BUBBLESIM_BOTH)
#undef BUBBLESIM_BOTH
#undef BUBBLESIM_UNPACK
#undef BUBBLESIM_FORM

}  // namespace bubblesim::capture::interpose

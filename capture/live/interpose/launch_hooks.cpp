// Kernels, copies and memsets on their way to the driver.
#include <array>
#include <atomic>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/driver_types.hpp"
#include "capture/live/interpose/hooks.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::capture::interpose {
namespace {

// ---- Kernels that communicate: the driver is asked for each function's name once.

using NameOf = CuResult (*)(const char**, Handle);

// Handles are pointers to objects of the driver, so their lowest bit is free to mark a collective.
constexpr std::uintptr_t kCollectiveBit = 1;
constexpr std::size_t kPlaces = 4096;  // a power of two; a large model has some hundred kernels
constexpr std::size_t kLooks = 16;
std::array<std::atomic<std::uintptr_t>, kPlaces> known_functions;

bool ask_driver(Handle function) noexcept try {
  static std::atomic<bool> looked{false};
  static std::atomic<void*> function_name{nullptr}, kernel_name{nullptr};
  if (!looked.load(std::memory_order_acquire)) {
    function_name.store(driver_function("cuFuncGetName"));
    kernel_name.store(driver_function("cuKernelGetName"));
    looked.store(true, std::memory_order_release);
  }
  for (const auto* place : {&function_name, &kernel_name}) {
    const auto name_of = reinterpret_cast<NameOf>(place->load());
    const char* name = nullptr;
    if (name_of == nullptr || name_of(&name, function) != kCuSuccess || name == nullptr) continue;
    return traces::is_communication_kernel(traces::demangled(name));
  }
  return false;
} catch (...) {
  return false;
}

// Whether the kernel's name is one of a communication library. False if the driver cannot name it
// (before CUDA 12.3). Known functions are found in a table.
bool is_collective(Handle function) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(function);
  if (value == 0 || (value & kCollectiveBit) != 0) return false;
  const std::size_t first = (value >> 4) * 0x9E3779B97F4A7C15ULL >> 32;
  for (std::size_t look = 0; look < kLooks; ++look) {
    std::atomic<std::uintptr_t>& place = known_functions[(first + look) % kPlaces];
    std::uintptr_t there = place.load(std::memory_order_relaxed);
    if (there == 0) {
      const std::uintptr_t entry = value | (ask_driver(function) ? kCollectiveBit : 0);
      if (place.compare_exchange_strong(there, entry, std::memory_order_relaxed)) there = entry;
    }
    if ((there & ~kCollectiveBit) == value) return (there & kCollectiveBit) != 0;
  }
  return ask_driver(function);
}

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
  // An error here is one that the launch itself gets next, and reports.
  return query(stream, &status) != kCuSuccess || status != 0;
}

#define BUBBLESIM_FORM(symbol, context, params, arg)                                              \
  BUBBLESIM_GATE_EXPORT CuResult symbol params noexcept {                                         \
    if (gate_is_wanted()) context_ends(context);                                                  \
    return CallOf<decltype(symbol)>::real(Slot::symbol, arg);                                     \
  }
BUBBLESIM_FORM(cuCtxDestroy_v2, x, (Handle x), x)
BUBBLESIM_FORM(cuDevicePrimaryCtxReset, nullptr, (int d), d)
BUBBLESIM_FORM(cuDevicePrimaryCtxReset_v2, nullptr, (int d), d)
BUBBLESIM_FORM(cuDevicePrimaryCtxRelease, nullptr, (int d), d)
BUBBLESIM_FORM(cuDevicePrimaryCtxRelease_v2, nullptr, (int d), d)
#undef BUBBLESIM_FORM

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

// The table of driver functions that the gate hooks, and the real functions behind the hooks.
#pragma once

#include <atomic>
#include <string_view>

#include "capture/live/interpose/driver_types.hpp"
#include "capture/live/interpose/hook_list.hpp"

namespace bubblesim::capture::interpose {

enum class Slot : unsigned {
#define BUBBLESIM_SLOT(base, version, api, since, kind, params, args) \
  base##version, base##version##_ptsz,
  BUBBLESIM_GATE_STREAM_CALLS(BUBBLESIM_SLOT)
#undef BUBBLESIM_SLOT
#define BUBBLESIM_SLOT(symbol, api, since, per_thread, params, args) symbol,
  BUBBLESIM_GATE_INSTANTIATIONS(BUBBLESIM_SLOT)
#undef BUBBLESIM_SLOT
#define BUBBLESIM_SLOT(symbol, api, since, params, args) symbol,
  BUBBLESIM_GATE_OTHERS(BUBBLESIM_SLOT)
#undef BUBBLESIM_SLOT
  kCount
};

struct Hook {
  const char* symbol;
  const char* api;   ///< as cuGetProcAddress knows it
  int since;         ///< CUDA version of this form, as cuGetProcAddress takes it
  bool per_thread;   ///< the form for the thread's own default stream
  void* ours;
  std::atomic<void*> real{nullptr};  ///< the driver's; once set it stays
};

/// The hook of an exported symbol; null: the gate does not hook it.
[[nodiscard]] Hook* hook_of_symbol(std::string_view symbol) noexcept;

/// The hook of the function that cuGetProcAddress is asked for: the newest form that `version` has.
[[nodiscard]] Hook* hook_of_request(std::string_view api, int version,
                                    std::uint64_t flags) noexcept;

/// The driver's function behind a hook; null: there is no driver, or it lacks the function.
[[nodiscard]] void* real_of(Hook& hook) noexcept;
[[nodiscard]] void* real_of(Slot slot) noexcept;

/// A driver function that the gate itself calls; null: the driver lacks it.
[[nodiscard]] void* driver_function(const char* symbol) noexcept;

/// Keeps the function's library loaded even if the program closes it: programs look for a GPU,
/// close the driver and load it again, and the gate still calls the functions that it found first.
void keep_loaded(void* function) noexcept;

/// The C library's dlsym.
using Dlsym = void* (*)(void*, const char*);
[[nodiscard]] Dlsym real_dlsym() noexcept;

}  // namespace bubblesim::capture::interpose

#include "capture/live/interpose/hooks.hpp"

#include <dlfcn.h>

// Visible in this declaration as in the definition: a hidden declaration would hide the definition.
#define BUBBLESIM_DECLARE(symbol, params) \
  extern "C" __attribute__((visibility("default"))) CuResult symbol params noexcept;

namespace bubblesim::capture::interpose {

#define BUBBLESIM_WRAPPER(base, version, api, since, kind, params, args) \
  BUBBLESIM_DECLARE(base##version, params)                               \
  BUBBLESIM_DECLARE(base##version##_ptsz, params)
BUBBLESIM_GATE_STREAM_CALLS(BUBBLESIM_WRAPPER)
#undef BUBBLESIM_WRAPPER
#define BUBBLESIM_WRAPPER(symbol, api, since, per_thread, params, args) \
  BUBBLESIM_DECLARE(symbol, params)
BUBBLESIM_GATE_INSTANTIATIONS(BUBBLESIM_WRAPPER)
#undef BUBBLESIM_WRAPPER
#define BUBBLESIM_WRAPPER(symbol, api, since, params, args) BUBBLESIM_DECLARE(symbol, params)
BUBBLESIM_GATE_OTHERS(BUBBLESIM_WRAPPER)
#undef BUBBLESIM_WRAPPER
#undef BUBBLESIM_DECLARE

namespace {

/// Forms for the thread's own default stream came with CUDA 7.
constexpr int since_per_thread(int since) { return since < 7000 ? 7000 : since; }

Hook table[] = {
#define BUBBLESIM_ENTRY(base, version, api, since, kind, params, args)                            \
  {#base #version, #api, since, false, reinterpret_cast<void*>(&base##version)},                  \
  {#base #version "_ptsz", #api, since_per_thread(since), true,                                   \
   reinterpret_cast<void*>(&base##version##_ptsz)},
    BUBBLESIM_GATE_STREAM_CALLS(BUBBLESIM_ENTRY)
#undef BUBBLESIM_ENTRY
#define BUBBLESIM_ENTRY(symbol, api, since, per_thread, params, args) \
  {#symbol, #api, since, per_thread, reinterpret_cast<void*>(&symbol)},
    BUBBLESIM_GATE_INSTANTIATIONS(BUBBLESIM_ENTRY)
#undef BUBBLESIM_ENTRY
#define BUBBLESIM_ENTRY(symbol, api, since, params, args) \
  {#symbol, #api, since, false, reinterpret_cast<void*>(&symbol)},
    BUBBLESIM_GATE_OTHERS(BUBBLESIM_ENTRY)
#undef BUBBLESIM_ENTRY
};
static_assert(std::size(table) == static_cast<std::size_t>(Slot::kCount));

std::atomic<Dlsym> found_dlsym{nullptr};

void* no_dlsym(void*, const char*) { return nullptr; }

/// The driver's library if the process has loaded it from any place; it then stays loaded.
void* driver_library() noexcept {
  constexpr int kHow = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
  void* const library = ::dlopen("libcuda.so.1", kHow);
  return library != nullptr ? library : ::dlopen("libcuda.so", kHow);
}

}  // namespace

Dlsym real_dlsym() noexcept {
  if (Dlsym known = found_dlsym.load(std::memory_order_acquire)) return known;
  void* found = nullptr;
  // Versions of dlsym in glibc: 2.34 and later; the first on x86-64 and on aarch64.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (found == nullptr) found = ::dlvsym(RTLD_NEXT, "dlsym", version);
  }
  const Dlsym made = found == nullptr ? &no_dlsym : reinterpret_cast<Dlsym>(found);
  found_dlsym.store(made, std::memory_order_release);
  return made;
}

void* driver_function(const char* symbol) noexcept {
  void* found = real_dlsym()(RTLD_NEXT, symbol);
  if (found != nullptr) return found;
  void* const library = driver_library();
  if (library == nullptr) return nullptr;
  found = real_dlsym()(library, symbol);
  ::dlclose(library);  // it stays loaded
  return found;
}

void keep_loaded(void* function) noexcept {
  Dl_info info{};
  if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  void* const library =
      ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library != nullptr) ::dlclose(library);
}

Hook* hook_of_symbol(std::string_view symbol) noexcept {
  for (Hook& hook : table) {
    if (symbol == hook.symbol) return &hook;
  }
  return nullptr;
}

Hook* hook_of_request(std::string_view api, int version, std::uint64_t flags) noexcept {
  const bool per_thread = (flags & kPerThreadStreams) != 0;
  Hook* best = nullptr;
  for (Hook& hook : table) {
    if (api != hook.api || hook.since > version || (hook.per_thread && !per_thread)) continue;
    // A form for the thread's own stream is preferred.
    const bool better = best == nullptr || (hook.per_thread && !best->per_thread) ||
                        (hook.per_thread == best->per_thread && hook.since > best->since);
    if (better) best = &hook;
  }
  return best;
}

void* real_of(Hook& hook) noexcept {
  void* known = hook.real.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* const found = driver_function(hook.symbol);
  if (found == nullptr || found == hook.ours) return nullptr;
  return hook.real.compare_exchange_strong(known, found) ? found : known;
}

void* real_of(Slot slot) noexcept { return real_of(table[static_cast<unsigned>(slot)]); }

}  // namespace bubblesim::capture::interpose

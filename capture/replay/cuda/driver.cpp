#include "capture/replay/cuda/driver.hpp"

#include <dlfcn.h>

#include <cstring>

#include "sim/base/dynamic_functions.hpp"

namespace bubblesim::capture::cuda {
namespace {

/// Finds functions by their names in libcuda, whose versions the table pins: cuGetProcAddress would
/// choose a version by a toolkit's number, and there is no toolkit.
void bind_all(FunctionFinder& bind, Driver& driver) {
#define BUBBLESIM_CUDA_BIND(name, symbol, arguments) bind.needed(driver.name, #symbol);
  BUBBLESIM_CUDA_NEEDED(BUBBLESIM_CUDA_BIND)
#undef BUBBLESIM_CUDA_BIND
#define BUBBLESIM_CUDA_BIND(name, symbol, arguments) bind.wanted(driver.name, #symbol);
  BUBBLESIM_CUDA_WANTED(BUBBLESIM_CUDA_BIND)
#undef BUBBLESIM_CUDA_BIND
}

/// The table's name of a function, as its name in libcuda.
std::string symbol_of(const std::string& name) {
#define BUBBLESIM_CUDA_NAME(field, symbol, arguments) \
  if (name == #field) return #symbol;
  BUBBLESIM_CUDA_NEEDED(BUBBLESIM_CUDA_NAME)
  BUBBLESIM_CUDA_WANTED(BUBBLESIM_CUDA_NAME)
#undef BUBBLESIM_CUDA_NAME
  return name;
}

}  // namespace

std::string Driver::failure(const char* what, Status status) const {
  const char* text = nullptr;
  if (error_string != nullptr) (void)error_string(status, &text);
  return symbol_of(what) + ": " + (text == nullptr ? "failed" : text) + " (" +
         std::to_string(static_cast<int>(status)) + ")";
}

Result<Driver> find_driver(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(path, {}, "cannot be loaded: there is no CUDA driver on this machine");
  Driver driver;
  FunctionFinder bind(library);
  bind_all(bind, driver);
  if (bind.missing() == nullptr) return driver;
  return fail(path, {},
              std::string("has no ") + bind.missing() + "; expected a driver of CUDA 12 or 13");
}

Result<void> checked(const Driver& driver, Status status, const char* what,
                     const std::string& where) {
  if (status == Status::kSuccess) return {};
  return fail(where, {}, driver.failure(what, status));
}

Result<OwnEvent> make_event(const Driver& driver) {
  EventHandle event = nullptr;
  BUBBLESIM_CUDA(driver, event_create, &event, kEventDisableTiming);
  return OwnEvent(event, {&driver});
}

Result<OwnStream> make_stream(const Driver& driver) {
  StreamHandle stream = nullptr;
  BUBBLESIM_CUDA(driver, stream_create, &stream, kStreamNonBlocking, 0);
  return OwnStream(stream, {&driver});
}

Result<OwnHostMemory> make_shared_memory(const Driver& driver, std::size_t bytes,
                                         DevicePointer& address) {
  void* memory = nullptr;
  BUBBLESIM_CUDA(driver, host_allocate, &memory, bytes, kHostAllocPortable | kHostAllocDeviceMap);
  OwnHostMemory owned(memory, {&driver});
  std::memset(memory, 0, bytes);
  BUBBLESIM_CUDA(driver, host_device_pointer, &address, memory, 0);
  return owned;
}

}  // namespace bubblesim::capture::cuda

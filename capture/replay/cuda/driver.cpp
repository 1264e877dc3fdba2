#include "capture/replay/cuda/driver.hpp"

#include <dlfcn.h>

namespace bubblesim::capture::cuda {
namespace {

template <class Function>
bool bind(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

/// By names in libcuda, whose versions the table pins: cuGetProcAddress would choose a version by
/// the number of a toolkit, and there is none here.
const char* bind_all(void* library, Driver& driver) {
  const char* missing = nullptr;
#define BUBBLESIM_CUDA_BIND(name, symbol, arguments) \
  if (!bind(library, driver.name, symbol) && missing == nullptr) missing = symbol;
  BUBBLESIM_CUDA_NEEDED(BUBBLESIM_CUDA_BIND)
#undef BUBBLESIM_CUDA_BIND
#define BUBBLESIM_CUDA_BIND(name, symbol, arguments) bind(library, driver.name, symbol);
  BUBBLESIM_CUDA_WANTED(BUBBLESIM_CUDA_BIND)
#undef BUBBLESIM_CUDA_BIND
  return missing;
}

/// The table's name of a function, as its name in libcuda.
std::string symbol_of(const std::string& name) {
#define BUBBLESIM_CUDA_NAME(field, symbol, arguments) \
  if (name == #field) return symbol;
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
  if (const char* missing = bind_all(library, driver))
    return fail(path, {},
                std::string("has no ") + missing + "; expected a driver of CUDA 12 or 13");
  return driver;
}

Result<void> checked(const Driver& driver, Status status, const char* what,
                     const std::string& where) {
  if (status == Status::kSuccess) return {};
  return fail(where, {}, driver.failure(what, status));
}

}  // namespace bubblesim::capture::cuda

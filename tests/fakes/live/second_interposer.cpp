// Another tool that stands before the driver's launches, as written in many a guide: it calls what
// dlsym says comes next.
#include <dlfcn.h>

#include "capture/live/interpose/driver_types.hpp"

using namespace bubblesim::capture::interpose;

extern "C" __attribute__((visibility("default"))) int cuLaunchKernel(
    Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
    unsigned m, Stream s, void** p, void** e) {
  using Launch = decltype(&cuLaunchKernel);
  static const auto next = reinterpret_cast<Launch>(::dlsym(RTLD_NEXT, "cuLaunchKernel"));
  return next(f, gx, gy, gz, bx, by, bz, m, s, p, e);
}

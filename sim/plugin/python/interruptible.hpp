// Long work that Ctrl-C ends.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>

namespace bubblesim::plugin::python {

/// Does `work` on a thread of its own, without Python's lock, and waits for it. Twenty times a
/// second it takes the lock, looks for Ctrl-C and calls `tick`. What either raises sets `stop`,
/// which `work` must heed, and is raised when `work` has returned. `work` does not throw.
void run_interruptibly(const std::function<void()>& work, std::atomic<bool>& stop,
                       const std::function<void()>& tick = {});

/// While it lives, Ctrl-C also sets `stop`, for work on the calling thread; Python raises it when
/// asked next. It does nothing off the main thread, where SIGINT's handler is not Python's default
/// one, and inside another run. Made and destroyed with Python's lock.
class StopOnInterrupt {
 public:
  explicit StopOnInterrupt(std::atomic<bool>& stop);
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  bool installed_ = false;
};

}  // namespace bubblesim::plugin::python

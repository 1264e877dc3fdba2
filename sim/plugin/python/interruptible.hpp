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

}  // namespace bubblesim::plugin::python

// Turns faults of the library into bubblesim.Error, with the same words.
#pragma once

#include <atomic>
#include <functional>
#include <type_traits>
#include <utility>

#include <pybind11/pybind11.h>

#include "sim/base/result.hpp"
#include "sim/plugin/python/python_policy.hpp"

namespace bubblesim::plugin::python {

/// The module bubblesim._core, once it is imported.
[[nodiscard]] py::module_ core();

/// A list of bubblesim.Fault.
py::list fault_list(const Errors& faults);

/// Raises bubblesim.Error with a line a fault, and the faults as its attribute `faults`. An
/// exception of a policy in Python becomes the error's cause; a BaseException that is no Exception
/// (Ctrl-C) is raised itself.
[[noreturn]] void raise_faults(const Errors& faults, RunFault* of_policy = nullptr);

template <class T>
T good(CheckedResult<T> result, RunFault* of_policy = nullptr) {
  if (!result) raise_faults(result.error(), of_policy);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class T>
T good(Result<T> result) {
  if (!result) raise_faults({result.error()});
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// The result of `work`, which runs without Python's lock.
template <class Work>
auto unlocked(const Work& work) {
  const py::gil_scoped_release released;
  return work();
}

/// Adds Error and Fault to the module.
void bind_errors(py::module_& module);

// Long work that Ctrl-C ends.

/// Does `work` on a thread of its own, without Python's lock, and waits for it. Twenty times a
/// second it takes the lock, checks for Ctrl-C and calls `tick`. An exception of either sets
/// `stop`, which `work` must heed, and is raised when `work` has returned; one of `work` likewise.
void run_interruptibly(const std::function<void()>& work, std::atomic<bool>& stop,
                       const std::function<void()>& tick = {});

/// While it lives, Ctrl-C also sets `stop`, for work on the calling thread; Python raises
/// KeyboardInterrupt when it next checks signals. It does nothing outside of the main thread,
/// inside another run, and if SIGINT's handler is not Python's default. Made and destroyed with
/// Python's lock.
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

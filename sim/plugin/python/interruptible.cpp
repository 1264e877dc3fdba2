#include "sim/plugin/python/interruptible.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace bubblesim::plugin::python {
namespace {

namespace py = pybind11;

constexpr auto kTick = std::chrono::milliseconds{50};

/// Waits for the work's end, with a call of `look` between.
class Watch {
 public:
  void end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }
  /// Whether the work has ended.
  bool wait() {
    const py::gil_scoped_release unlocked;
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kTick, [this] { return ended_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
};

}  // namespace

void run_interruptibly(const std::function<void()>& work, std::atomic<bool>& stop,
                       const std::function<void()>& tick) {
  Watch watch;
  std::thread thread([&] {
    work();
    watch.end();
  });
  std::exception_ptr raised;
  while (!watch.wait()) {
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (tick) tick();
    } catch (...) {
      raised = std::current_exception();
      stop = true;
    }
  }
  thread.join();
  if (raised) std::rethrow_exception(raised);
}

}  // namespace bubblesim::plugin::python

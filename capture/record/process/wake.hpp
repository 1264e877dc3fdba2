// Lets one thread sleep until another, or a callback inside the job, has something for it.
#pragma once

#include "sim/base/time.hpp"

namespace bubblesim::capture {

/// An eventfd: no lock that a fork could leave taken, and it can be waited for beside sockets.
class Wake {
 public:
  Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  ~Wake();

  /// Async-signal-safe. Without a descriptor it does nothing; sleepers also wake by time.
  void notify() noexcept;
  /// Returns after notify(), also an earlier one that nobody waited for, or after `longest`.
  void wait(Duration longest) noexcept;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace bubblesim::capture

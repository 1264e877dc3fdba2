// One process at a time measures on a GPU: a lock that goes with its process, however that ends.
#pragma once

#include <functional>
#include <string>

#include "sim/base/time.hpp"

namespace bubblesim::capture::cuda {

class DeviceLock {
 public:
  /// Waits until no other process has the lock, at most `patience` of the machine's time, and calls
  /// `waiting` about once a second. An empty folder, or one that cannot be written to, gives no
  /// lock.
  DeviceLock(const std::string& folder, const std::string& uuid, Duration patience,
             const std::function<void()>& waiting = {});
  ~DeviceLock();
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace bubblesim::capture::cuda

// Waits for an effect of another process, up to a bound far above the time that it needs.
#pragma once

#include <chrono>
#include <thread>

namespace bubblesim::capture {

/// Waits until `ready` is true. False: 30 s have passed.
template <class Condition>
[[nodiscard]] bool becomes_true(Condition&& ready) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace bubblesim::capture

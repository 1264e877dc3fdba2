// Waiting for what another process does: bounded, and far longer than it takes.
#pragma once

#include <chrono>
#include <thread>

namespace bubblesim::capture {

/// Whether `ready` came true within 30 s.
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

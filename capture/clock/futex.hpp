// Linux futexes on words that processes share.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {

/// CLOCK_MONOTONIC.
[[nodiscard]] HostTime machine_now() noexcept;

/// Sleeps while the word has this value, until a wake-up or until machine_now() reaches `deadline`
/// (max(): none); may return earlier.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                HostTime deadline) noexcept;

/// Wakes all threads that sleep on the word.
void futex_wake(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace bubblesim::capture

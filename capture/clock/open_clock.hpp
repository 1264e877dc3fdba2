// The clocks that there are, by address.
#pragma once

#include <memory>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

inline constexpr Duration kDefaultSpin = std::chrono::microseconds(50);

/// CLOCK_MONOTONIC. Waits of less than `spin` are spent looking, not sleeping: a futex wakes some
/// 50 us late.
[[nodiscard]] std::unique_ptr<HostClock> wall_clock(Duration spin = kDefaultSpin);

/// The clock of "wall", or "wall:SPIN" with nanoseconds; null: `address` is another clock's, or of
/// none.
[[nodiscard]] std::unique_ptr<HostClock> wall_clock_at(const std::string& address);

/// A new clock of turns that starts at zero; its shared memory goes with the object. Parts whose
/// process has died lose their turn. If all wait for bells without deadline, the parts of the
/// greatest Turn return from wait() once every 2 s of the machine's time.
[[nodiscard]] Result<std::unique_ptr<HostClock>> make_turn_clock();

/// The clock that HostClock::address() names: "wall", "wall:SPIN", or "turns:NAME".
[[nodiscard]] Result<std::unique_ptr<HostClock>> open_clock(const std::string& address);

}  // namespace bubblesim::capture

// The rows of a gate as its clients use them: taken by threads, given back, written to.
#pragma once

#include <cstdint>

#include "capture/gate/gate_segment.hpp"

namespace bubblesim::capture {

/// A row that a thread holds; `state` as it was when the thread took it.
struct HeldRow {
  GateRow* row = nullptr;
  std::uint64_t state = 0;
};

/// Takes a row for the calling thread; none if all are in use.
[[nodiscard]] HeldRow take_row(GateSegment& segment, std::uint32_t client) noexcept;

/// Nothing if somebody else has it by now.
void give_back(const HeldRow& held) noexcept;

/// Appends; false if the ring is full. Gives the message its order. Called by the row's thread
/// only.
[[nodiscard]] bool put(GateSegment& segment, GateRow& row, GateMessage& message) noexcept;

}  // namespace bubblesim::capture

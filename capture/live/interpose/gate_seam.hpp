// All that the hooks know of the gate: whether it exists, and a call before and after each launch.
#pragma once

#include <chrono>

#include "capture/live/interpose/driver_types.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture::interpose {

class Link;

/// A launch on its way to the driver. The gate fills in client and launch number of `info`.
struct SeenLaunch {
  policy::LaunchInfo info;
  Stream stream = nullptr;
  bool per_thread = false;  ///< stream 0 is the thread's own
  std::chrono::steady_clock::time_point began{};  ///< when the gate's work for it began
  // Set by the gate.
  Link* link = nullptr;  ///< to the gate of the GPU; null: it has none
  bool held = false;
};

/// Whether the gate wants to hear of launches at all. Reads one flag.
[[nodiscard]] bool gate_is_wanted() noexcept;

/// May wait; holds no lock meanwhile.
void before_launch(SeenLaunch& launch) noexcept;
/// The context is about to end, or may be (null: it is not known which): after this call the gate
/// touches none of its own events in it.
void context_ends(Handle context) noexcept;
/// Called in the same thread, whether the launch succeeded or not.
void after_launch(const SeenLaunch& launch, CuResult result) noexcept;

}  // namespace bubblesim::capture::interpose

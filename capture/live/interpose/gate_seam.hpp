// What the hooks know of the gate: whether there is one, and two calls around each launch.
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
  std::chrono::steady_clock::time_point began{};  ///< the gate's work for it
  // The gate's to say.
  Link* link = nullptr;  ///< to the gate of the GPU; null: it has none
  bool held = false;
};

/// Whether launches are to be told at all. A look at a flag.
[[nodiscard]] bool gate_is_wanted() noexcept;

/// May wait, with no lock held.
void before_launch(SeenLaunch& launch) noexcept;
/// The context is about to end, or may be (null: some context): nothing that the gate has in it is
/// touched after this.
void context_ends(Handle context) noexcept;
/// Called in the same thread, whatever came of the launch.
void after_launch(const SeenLaunch& launch, CuResult result) noexcept;

}  // namespace bubblesim::capture::interpose

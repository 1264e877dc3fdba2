// Shared by all hooks: calling the driver's own function, and passing the gate.
#pragma once

#include "capture/live/interpose/gate_seam.hpp"
#include "capture/live/interpose/hooks.hpp"

/// Exported from the shared object.
#define BUBBLESIM_GATE_EXPORT extern "C" __attribute__((visibility("default")))

namespace bubblesim::capture::interpose {

template <class Function>
struct CallOf;
template <class... Parameters>
struct CallOf<CuResult(Parameters...) noexcept> {
  /// Calls the driver's own function behind `slot`.
  static CuResult real(Slot slot, Parameters... parameters) noexcept {
    using Pointer = CuResult (*)(Parameters...);
    const auto function = reinterpret_cast<Pointer>(real_of(slot));
    return function == nullptr ? kCuNotFound : function(parameters...);
  }
};

/// How deep the thread is inside hooks: calls made there are the driver's or the gate's, not
/// launches of the program.
class Inside {
 public:
  Inside() noexcept { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] static bool is_active() noexcept { return depth > 0; }

 private:
  static thread_local int depth;
};

/// Whether the stream is being captured: its launches go into a graph and do not run.
[[nodiscard]] bool is_captured(Stream stream, bool per_thread) noexcept;

/// Makes the call, through the gate if it is a launch of the program's own. `look` describes such a
/// launch for the gate; other calls do not use it.
template <class Look, class Call>
CuResult pass(Stream stream, bool per_thread, Look&& look, Call&& call) noexcept {
  if (!gate_is_wanted() || Inside::is_active()) return call();
  SeenLaunch seen{{}, stream, per_thread, std::chrono::steady_clock::now()};
  if (is_captured(stream, per_thread)) return call();
  const Inside inside;
  look(seen.info);
  before_launch(seen);
  const CuResult result = call();
  after_launch(seen, result);
  return result;
}

}  // namespace bubblesim::capture::interpose

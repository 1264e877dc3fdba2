// What held the starts of a job's operations and the waits of its hosts, and the share of its time
// that nothing in the recording explains. Counted where programs are built (sim/workload), over
// the iterations used; sums over ranks add up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::traces {

/// What was satisfied last before an operation started.
enum class HeldBy : std::uint8_t {
  kLaunch,    ///< its launching call
  kStream,    ///< the operation before it on its stream
  kEdge,      ///< an operation of another stream, as recorded calls and edges say
  kInferred,  ///< one that was inferred, or a launch that was not recorded
  kUnknown,   ///< something not recorded: it started long after all of these
};
inline constexpr std::size_t kHeldByCount = 5;

/// Kinds of host waits.
enum class HostWait : std::uint8_t {
  kStream, kDevice, kEvent, kCopy, kMemory, kQueue, kThread
};
inline constexpr std::size_t kHostWaitCount = 7;

/// What a host wait was for.
enum class WaitFor : std::uint8_t {
  kNamed,     ///< work that the call names
  kInferred,  ///< work that was inferred
  kNothing,   ///< nothing was pending: the call returned at once
  kUnknown,   ///< something not recorded
};
inline constexpr std::size_t kWaitForCount = 4;

/// From these shares on unexplained time is a loss, and counterfactuals of the job are doubtful.
inline constexpr double kTellingShare = 0.01;
inline constexpr double kDoubtfulShare = 0.1;

struct Explanation {
  Duration window{};  ///< the iterations used
  std::array<std::uint64_t, kHeldByCount> starts{};
  std::array<std::array<std::uint64_t, kWaitForCount>, kHostWaitCount> waits{};
  Duration late_starts{};                                ///< in which some start is unexplained
  std::array<Duration, kHostWaitCount> open_waits{};     ///< in which some wait of the kind is
  Duration unexplained{};                                ///< in which any of these is

  /// Of the window, at most 1; 0 without a window.
  [[nodiscard]] double share() const;
  void add(const Explanation& other);
};

/// The sum over ranks, as a section of an inspection: two tables of at most 100 columns.
[[nodiscard]] std::string explanation_text(const std::vector<Explanation>& ranks);

/// {window_ns, unexplained_ns, unexplained_fraction, starts: {<held by>: count, unexplained_ns},
/// waits: {<kind>: {<wait for>: count, unexplained_ns}}}.
[[nodiscard]] Json explanation_json(const Explanation& found);

}  // namespace bubblesim::traces

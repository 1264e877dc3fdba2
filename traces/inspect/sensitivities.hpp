// What the iteration time of a job depends on, and which of it the job's bubbles come from.
//
// The sensitivity to a thing is 2 (1 - T' / T): T is the iteration time of the job replayed, T' the
// same with that thing twice as fast. 1: the iteration halves; 0: nothing changes.
// In a replay T is a maximum over paths of sums of durations, so halving one thing saves at most
// half of its share of the longest path, and the sensitivities add up to at most 1. With all of
// them twice as fast, what is left of 1 is fixed: latencies of launches, of returns and of waking
// up, and what is unexplained. The rest belongs to paths of different things that are nearly as
// long as each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/time.hpp"
#include "traces/inspect/bubbles.hpp"

namespace bubblesim::traces {

/// The rank that comes last to collectives, and how long after the median rank, in the mean.
struct Straggler {
  std::uint32_t rank = 0;
  Duration late{};
};

struct Sensitivities {
  Duration iteration{};  ///< T: mean over ranks of the mean replayed iteration
  double kernels = 0;    ///< own kernels, without collectives
  double copies = 0;     ///< copies and memsets
  double link = 0;       ///< collectives, from the arrival of the last rank on
  double host = 0;       ///< calls of host threads, and pauses between them
  double fixed = 0;      ///< stays when all of these are faster; 0 to 1
  bool alone = false;    ///< other ranks were not recorded: waiting for them is in `link`

  std::optional<Straggler> straggler;

  [[nodiscard]] double rest() const { return 1 - kernels - copies - link - host; }
};

/// What makes the iteration shorter, if anything does.
enum class Bottleneck : std::uint8_t { kKernels, kCopies, kLink, kHost, kNothing };

inline constexpr double kMatters = 0.1;
/// The largest sensitivity; kNothing below `kMatters`, and where more is fixed.
[[nodiscard]] Bottleneck bottleneck(const Sensitivities& job);
/// "kernels", "copies", "link", "host", "none".
[[nodiscard]] std::string_view bottleneck_name(Bottleneck bottleneck);

/// The sensitivities of the bubbles: 1 if they halve where this is twice as fast. `own` is the
/// share of the iteration in which own work runs: faster kernels shorten it, and no bubble.
[[nodiscard]] Sensitivities of_bubbles(const Sensitivities& job, double own);

/// Why there are bubbles whose main cause is `cause`, as their sensitivities confirm it: "late
/// hosts: hosts twice as fast save 45.9 % of the bubbles, links 0.0 %". Names the straggler, if
/// there is one.
[[nodiscard]] std::string confirmed_cause(BubbleCause cause, const Sensitivities& bubbles);

/// Shares of a window in which a job's devices do something.
struct DeviceShares {
  double own = 0;            ///< own work
  double communication = 0;  ///< collectives run
  double exposed = 0;        ///< collectives alone
};

/// A sensitivity below this is near zero, and has a reason.
inline constexpr double kNearZero = 0.05;
/// Why the sensitivity to `what` is near zero: "own work runs 3.7 % of the time". Empty: it is not.
[[nodiscard]] std::string near_zero_reason(Bottleneck what, const Sensitivities& job,
                                           const DeviceShares& shares);

// What held the starts of a job's operations and the waits of its hosts, and the share of its time
// that nothing in the recording explains. Counted where programs are built (sim/workload), over
// the iterations used; sums over ranks add up.

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

  /// A share of the window, at most 1; 0 without a window.
  [[nodiscard]] double share() const;
  void add(const Explanation& other);
};

/// The sum over ranks, as a section of an inspection: two tables of at most 100 columns.
[[nodiscard]] std::string explanation_text(const std::vector<Explanation>& ranks);

/// {window_ns, unexplained_ns, unexplained_fraction, starts: {<held by>: count, unexplained_ns},
/// waits: {<kind>: {<wait for>: count, unexplained_ns}}}.
[[nodiscard]] Json explanation_json(const Explanation& found);

}  // namespace bubblesim::traces

// The sensitivities of a job's iteration time, and the causes of its bubbles.
//
// The sensitivity to one kind of work is 2 (1 - T' / T): T is the iteration time of the replayed
// job, T' the same with that kind twice as fast. 1: the iteration halves; 0: no change. In a replay
// T is a maximum over paths of sums of durations, so that halving one kind saves at most half of
// its share of the longest path, and the sensitivities add up to at most 1. With all kinds twice as
// fast, the remaining part of 1 is fixed: latencies of launches, of returns and of waking up, and
// unexplained time. The rest belongs to paths of different kinds with nearly equal lengths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/time.hpp"
#include "traces/inspect/bubbles.hpp"

namespace bubblesim::traces {

/// The rank that reaches collectives last, and its mean lateness after the median rank.
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
  double fixed = 0;      ///< unchanged when all of these are faster; 0 to 1
  bool alone = false;    ///< other ranks were not recorded: waits for them are in `link`

  std::optional<Straggler> straggler;

  [[nodiscard]] double rest() const { return 1 - kernels - copies - link - host; }
};

/// The kind of work whose speed-up shortens the iteration most.
enum class Bottleneck : std::uint8_t { kKernels, kCopies, kLink, kHost, kNothing };

/// The sensitivity to each thing that may be the bottleneck.
[[nodiscard]] std::array<std::pair<Bottleneck, double>, 4> bottleneck_sensitivities(
    const Sensitivities& job);

inline constexpr double kMatters = 0.1;
/// The largest sensitivity; kNothing if it is below `kMatters` or below the fixed part.
[[nodiscard]] Bottleneck bottleneck(const Sensitivities& job);
/// "kernels", "copies", "link", "host", "none".
[[nodiscard]] std::string_view bottleneck_name(Bottleneck bottleneck);

/// The sensitivities of the bubbles: 1 if twice the speed halves them. `own` is the share of the
/// iteration in which own work runs: faster kernels shorten this work, and no bubble.
[[nodiscard]] Sensitivities of_bubbles(const Sensitivities& job, double own);

/// The reason for bubbles of main cause `cause`, confirmed by their sensitivities: "late hosts:
/// hosts twice as fast save 45.9 % of the bubbles, links 0.0 %". Names the straggler, if there is
/// one.
[[nodiscard]] std::string confirmed_cause(BubbleCause cause, const Sensitivities& bubbles);

/// Shares of a window by the activity of a job's devices.
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

// The causes of the starts of a job's operations and of its hosts' waits, and the share of its time
// that the recording does not explain. Counted where programs are built (sim/workload), over the
// iterations used; sums over ranks add up.

/// The last condition before an operation started.
enum class HeldBy : std::uint8_t {
  kLaunch,    ///< its launching call
  kStream,    ///< the previous operation on its stream
  kEdge,      ///< an operation of another stream, by recorded calls and edges
  kInferred,  ///< an inferred dependency, or a launch that was not recorded
  kUnknown,   ///< not recorded: it started long after all of these
};
inline constexpr std::size_t kHeldByCount = 5;

/// Kinds of host waits.
enum class HostWait : std::uint8_t {
  kStream, kDevice, kEvent, kCopy, kMemory, kQueue, kThread
};
inline constexpr std::size_t kHostWaitCount = 7;

/// The object of a host wait.
enum class WaitFor : std::uint8_t {
  kNamed,     ///< work named by the call
  kInferred,  ///< inferred work
  kNothing,   ///< none: the call returned at once
  kUnknown,   ///< not recorded
};
inline constexpr std::size_t kWaitForCount = 4;

/// From this share on unexplained time is a loss, and counterfactuals of the job are doubtful.
inline constexpr double kTellingShare = 0.01;
inline constexpr double kDoubtfulShare = 0.1;

struct Explanation {
  Duration window{};  ///< the length of the iterations used
  std::array<std::uint64_t, kHeldByCount> starts{};
  std::array<std::array<std::uint64_t, kWaitForCount>, kHostWaitCount> waits{};
  Duration late_starts{};                                ///< time in which some start is
                                                         ///< unexplained
  std::array<Duration, kHostWaitCount> open_waits{};     ///< time in which some wait of the kind is
                                                         ///< unexplained
  Duration unexplained{};                                ///< time in which any of these is

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

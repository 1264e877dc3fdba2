// What came of two programs that ran side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/live/live_counts.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// What one job did, all its processes together.
struct LiveJobReport {
  std::optional<ChildEnd> end;      ///< nothing: could not be started, or lives on
  Duration ran{};
  std::uint32_t processes = 0;    ///< that were gated, one after the other
  std::uint32_t ungated_processes = 0;
  std::uint32_t processes_elsewhere = 0;  ///< that launched on other GPUs than the gate's
  std::uint64_t kernels = 0;      ///< launches of kernels and graphs
  std::uint64_t collectives = 0;
  std::uint64_t copies = 0;       ///< and memsets
  std::uint64_t blocks = 0;
  std::uint64_t undecided = 0;    ///< launches while nobody decided
  std::uint64_t held = 0;
  Duration held_time{};
  Duration passing_time{};        ///< spent at the gate by launches that were not held
  std::uint64_t window_waits = 0;
  Duration window_time{};
  std::uint64_t window_passed = 0;  ///< went on though the window was full
  std::uint64_t completions = 0;
  std::uint64_t completions_guessed = 0;
  std::uint64_t iterations = 0;

  [[nodiscard]] std::uint64_t launches() const { return kernels + collectives + copies; }
};

struct FillReport {
  LiveJobReport training, filler;
  bool interrupted = false;       ///< by a signal to this program
  bool filler_stopped = false;    ///< by this program
  bool filler_killed = false;     ///< it did not end when it was told to
  PolicyHostCounts host;
  CounterSet counters;
  std::optional<Error> fault;     ///< of the policy: from then on the gate was open
  std::vector<std::string> notes;
};

/// What `counts` say; `end` and `ran` are left as they are.
[[nodiscard]] LiveJobReport report_of_counts(const LiveCounts& counts);

}  // namespace bubblesim::capture

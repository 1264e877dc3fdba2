// Decides when a run is long enough: it checks the report's main figures now and then, each with
// its confidence interval (sim/observe/batch_means.hpp).
//
// The first look comes when the window has its least length, each further one when it is a quarter
// longer; the run ends with the second look in a row at which all figures have the wanted
// precision, or when the window has its greatest length. Ending at the first such look would favour
// intervals that are short by chance. Measured on 600 queues M/D/1 at a load of 0.3, with the p95
// wanted to 5 %: the p95 was within that in 91.5 % of runs if the first look ended the run and in
// 95.5 % if the second did. The interval itself, by then shorter than wanted, held the true p95 in
// 86 % and 88.5 %. Wanted to 2 % (150 queues), the p95 was within that in 91 % and 97 %, and within
// the interval in 91 % and 93 %.
//
// Training and offline fillers with almost no progress have no interval. Their rates count as known
// if even three more iterations or passes would not exceed the wanted share of their rate alone: a
// Poisson process without an event in a window has fewer than three expected events, with 95 %
// confidence (the rule of three: J. A. Hanley and A. Lippman-Hand, JAMA 249, 1983).
//
// The precision of a slow offline filler is relative to a tenth of its rate alone, if that is more
// than its rate.
//
// A latency that grows with the run never becomes precise. It counts as growing when the filler is
// overloaded (observe::is_overloaded) at two looks, the later at twice the length. A filler alone,
// whose latency is not needed, is watched until it is overloaded, or until its backlog grows by
// less than the wanted share of the arrivals (observe::keeps_up).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/observe/batch_means.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/summary.hpp"
#include "sim/run/gpu_node.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::run {

inline constexpr CounterSpec kPrecisionNotReached{
    "run_precision_not_reached", Severity::kNotice,
    "figures that were not as sure as was asked for when the run came to its greatest length"};

/// The time that the scenario's policy needs to settle; 0 without a policy. The warm-up of a run
/// whose length is "auto" lasts at least as long.
[[nodiscard]] Duration settling_of(const RunScenario& scenario);

class PrecisionWatch {
 public:
  /// Precondition: loaded.config.precision. All references outlive this.
  PrecisionWatch(const LoadedRun& loaded, const RunScenario& scenario,
                 const Nodes& nodes, SimTime warmup);

  /// The time of the next look; at most last().
  [[nodiscard]] SimTime next_look() const { return next_; }
  /// When the window has its greatest length.
  [[nodiscard]] SimTime last() const { return last_; }
  /// True: all figures are known, at the last look and at the one before.
  bool look(SimTime now);
  /// The precision found at the last look.
  [[nodiscard]] const observe::RunPrecision& found() const { return found_; }
  /// Figures that were neither precise enough nor overloaded then.
  [[nodiscard]] std::uint64_t unknown() const;

 private:
  /// An online filler's served requests up to a look.
  struct Requests {
    observe::FillerResult counts;
    observe::Backlog backlog;
  };

  void add(observe::KnownFigure figure, const std::optional<observe::Estimate>& estimate);
  void look_at_training(SimTime now);
  void look_at_filler(std::uint32_t filler, SimTime now);
  void look_at_offline(std::uint32_t filler, SimTime now);
  void look_at_online(std::uint32_t filler, SimTime now);
  [[nodiscard]] Requests count(std::uint32_t filler, SimTime now) const;
  [[nodiscard]] bool is_overloaded(std::uint32_t filler, const Requests& requests, SimTime now);
  [[nodiscard]] std::vector<FillerInstance*> admitted(std::uint32_t filler) const;

  const LoadedRun& loaded_;
  const PrecisionGoal& goal_;
  const RunScenario& scenario_;
  const Nodes& nodes_;
  SimTime warmup_;
  SimTime next_;
  SimTime last_;
  std::vector<std::optional<Duration>> overloaded_since_;  ///< by filler: length of the window
  bool settled_ = true;  ///< only figures are still waited for
  bool known_ = false;   ///< at the last look
  observe::RunPrecision found_;
};

}  // namespace bubblesim::run

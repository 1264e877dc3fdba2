// When a run has gone on for long enough: the figures that its report is read for, looked at now
// and then, each with how sure it is (sim/observe/batch_means.hpp).
//
// The first look comes when the window has its least length, each further one when it is a quarter
// longer; the run ends with the second look in a row at which all figures are as sure as they were
// asked to be, or when the window has its greatest length. A run that ends at the first such look
// ends where intervals are short by chance. The p95 of 600 queues M/D/1 at a load of 0.3, which was
// wanted to 5 %, was that near in 91.5 % of them when the first look counted and in 95.5 % when the
// second did; at 2 % (150 queues) in 91 % and 97 %. The interval itself, which is shorter than what
// was wanted by then, held the true p95 in 86 % and 88.5 %, and in 91 % and 93 %.
//
// Training and offline fillers that do next to nothing have no interval. Then their rates are
// known if not even three more iterations or passes would make them more than the share of what
// they do alone that was asked for: of a Poisson process that has had no event in a window, fewer
// than three were to be expected with 95 % confidence (the rule of three: J. A. Hanley and
// A. Lippman-Hand, JAMA 249, 1983).
//
// The rate of an offline filler that gets little is taken as a share of a tenth of what it does
// alone, if that is more than the rate itself.
//
// A latency that grows as long as the run lasts is not known by waiting. It counts as such when the
// filler is overloaded (observe::is_overloaded) at two looks, the later at twice the length. A
// filler alone, whose latency is not needed, is watched until it is overloaded, or until its
// backlog's growth is less than the share of the arrivals to which fillers are to be known
// (observe::keeps_up).
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

/// How long `policy` needs until it has settled; 0: no policy, or at once. The warm-up of a run
/// whose length is "auto" lasts at least as long.
[[nodiscard]] Duration settling_of(const RunScenario& scenario);

class PrecisionWatch {
 public:
  /// Precondition: loaded.config.precision. All references outlive this.
  PrecisionWatch(const LoadedRun& loaded, const RunScenario& scenario,
                 const std::vector<std::unique_ptr<GpuNode>>& nodes, SimTime warmup);

  /// When to look next; at most last().
  [[nodiscard]] SimTime next_look() const { return next_; }
  /// When the window has its greatest length.
  [[nodiscard]] SimTime last() const { return last_; }
  /// True: all figures are known, at the last look and at the one before.
  bool look(SimTime now);
  /// What the last look found.
  [[nodiscard]] const observe::RunPrecision& found() const { return found_; }
  /// Figures that it found neither sure enough nor overloaded.
  [[nodiscard]] std::uint64_t unknown() const;

 private:
  /// What an online filler has served up to a look.
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
  const std::vector<std::unique_ptr<GpuNode>>& nodes_;
  SimTime warmup_;
  SimTime next_;
  SimTime last_;
  std::vector<std::optional<Duration>> overloaded_since_;  ///< by filler: length of the window
  bool settled_ = true;  ///< nothing but figures is waited for
  bool known_ = false;   ///< at the last look
  observe::RunPrecision found_;
};

}  // namespace bubblesim::run

// Times and memory of a schedule: start and end of every action, bubbles, activations held.
//
// Times are whole numbers in any unit, nanoseconds or abstract ones; sums are exact. An action
// starts when its rank is free and all its inputs are done; an input from another rank arrives
// `p2p` later. Both ranks go on computing during a transfer.
//
// Two measures of the bubble, which differ (ZB paper, arXiv 2401.10241, section 5.3):
//  - per-stage span: (longest time from a rank's first start to its last end, minus the work of
//    that rank) over that time. Right if no barrier separates iterations.
//  - makespan: idle time of all ranks from first start to last end, over ranks x makespan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/pipeline/registry.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {

/// Times of one micro-batch on one stage, each at least 0.
struct StageTimes {
  std::int64_t forward = 1;
  std::int64_t input_grad = 1;
  std::int64_t weight_grad = 1;

  [[nodiscard]] constexpr std::int64_t backward() const { return input_grad + weight_grad; }
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

struct UnitTimes {
  StageTimes every_stage;                  ///< of every stage, unless by_stage is given
  std::optional<std::int64_t> backward;    ///< of B; default: I + W
  std::optional<std::int64_t> overlapped;  ///< of a pair; default: F of one plus B of the other
  std::int64_t p2p = 0;                    ///< from one rank to another
  std::vector<StageTimes> by_stage;        ///< empty, or one a stage

  [[nodiscard]] const StageTimes& at_stage(std::uint32_t stage) const {
    return by_stage.empty() ? every_stage : by_stage[stage];
  }
  [[nodiscard]] std::int64_t duration(const Action& action) const;
  [[nodiscard]] std::int64_t backward_of(std::uint32_t stage) const {
    return backward.value_or(at_stage(stage).backward());
  }
};

/// Memory that one micro-batch holds on one stage, in any unit: `forward` from the start of F to
/// the end of B or I, and after I `after_input_grad` until the end of W. (1, 1) counts
/// micro-batches until W or B.
struct ActivationUnits {
  std::int64_t forward = 1;           ///< M_B of the ZB paper
  std::int64_t after_input_grad = 1;  ///< M_W
};

struct Span {
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

enum class BubbleKind : std::uint8_t {
  kFillDrain,  ///< before a rank's first or after its last action: one bubble across iterations
  kBetween,    ///< before a rank's first backward
  kGap,        ///< any other: short gaps, as in the cool-down of 1F1B
};

struct ScheduleBubble {
  std::uint32_t rank = 0;
  std::int64_t start = 0;
  std::int64_t length = 0;
  BubbleKind kind = BubbleKind::kFillDrain;
  friend bool operator==(const ScheduleBubble&, const ScheduleBubble&) = default;
};

struct Execution {
  std::vector<std::vector<Span>> spans;  ///< by rank, then as in Schedule::actions
  std::int64_t makespan = 0;             ///< first start is 0
  std::vector<std::int64_t> busy;        ///< by rank
  std::vector<std::int64_t> idle;        ///< by rank: makespan - busy
  std::vector<ScheduleBubble> bubbles;           ///< by rank, then start; none of length 0
  std::vector<std::int64_t> peak_activations;  ///< by rank, in ActivationUnits; micro-batches of n
                                               ///< samples count n-fold
  std::uint32_t longest_rank = 0;        ///< of the longest span; the first of equals
  std::int64_t longest_span = 0;

  /// Idle within the longest span.
  [[nodiscard]] std::int64_t span_bubble() const { return longest_span - busy[longest_rank]; }
  /// 0 to 1; 0 if the span is empty.
  [[nodiscard]] double span_bubble_fraction() const;
  [[nodiscard]] double makespan_bubble_fraction() const;
  /// The share of the makespan's idle time that is kFillDrain or kBetween.
  [[nodiscard]] double contiguous_fraction() const;
};

/// Preconditions: the schedule has passed check(); actions times the longest time is below 2^63.
[[nodiscard]] Execution execute(const Schedule& schedule, const StageGraph& graph,
                                const UnitTimes& times, const ActivationUnits& units = {});

[[nodiscard]] const char* bubble_kind_name(BubbleKind kind);

// Closed forms of a schedule's idle time and of its peak activations by rank. They serve to check
// schedules (`bubblesim schedule`, judges, tests); no simulated run uses them.

enum class BubbleMeasure : std::uint8_t {
  kSpan,      ///< Execution::span_bubble()
  kMakespan,  ///< Execution::idle of every rank
};

struct ClosedForm {
  BubbleMeasure measure = BubbleMeasure::kMakespan;
  std::int64_t bubble = 0;  ///< in the unit of the times
  std::string formula;      ///< with p, m, v, and F, I, W, B = I + W of one stage
  std::string source;
  std::vector<std::int64_t> peaks;  ///< by rank, in ActivationUnits
};

/// Nothing if no form applies: transfers take time, stages differ, a graph is given, or times are
/// outside the formula's range (found by a search over small times, see the tests).
[[nodiscard]] std::optional<ClosedForm> closed_form(std::string_view name,
                                                    const ScheduleRequest& request,
                                                    const UnitTimes& times,
                                                    const ActivationUnits& units = {});

}  // namespace bubblesim::pipeline

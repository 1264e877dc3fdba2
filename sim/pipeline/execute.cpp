#include "sim/pipeline/execute.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"
#include "sim/pipeline/check.hpp"

namespace bubblesim::pipeline {
namespace {

void place_actions(const Schedule& schedule, const StageGraph& graph, const UnitTimes& times,
                   Execution& result) {
  const Walk path = walk(schedule, graph);
  BUBBLESIM_CHECK(path.stuck.empty(), "a schedule was executed that has not passed check()");
  result.spans.resize(schedule.ranks);
  result.busy.resize(schedule.ranks);
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    result.spans[rank].resize(schedule.actions[rank].size());
  }
  const CellIndex cells(graph);
  std::array<std::vector<std::int64_t>, 2> ends;  // by product, then cell
  for (auto& product : ends) product.resize(cells.size());
  for (const auto& [rank, position] : path.order) {
    const Action& action = schedule.actions[rank][position];
    std::int64_t start = position == 0 ? 0 : result.spans[rank][position - 1].end;
    for_each_input(action, graph, [&, rank = rank](const ProductRef& ref) {
      const std::int64_t end = ends[static_cast<std::size_t>(ref.product)]
                                   [cells.index(ref.stage, ref.micro_batch)];
      const bool moves = schedule.rank_of_stage[ref.stage] != rank;
      start = std::max(start, end + (moves ? times.p2p : 0));
    });
    const std::int64_t end = start + times.duration(action);
    if (action.has_forward()) ends[0][cells.index(action.stage, action.micro_batch)] = end;
    if (action.has_input_grad()) {
      ends[1][cells.index(action.backward_stage(), action.backward_micro_batch())] = end;
    }
    result.spans[rank][position] = {start, end};
    result.busy[rank] += end - start;
  }
}

void measure_spans(Execution& result) {
  for (const auto& spans : result.spans) {
    if (!spans.empty()) result.makespan = std::max(result.makespan, spans.back().end);
  }
  for (std::uint32_t rank = 0; rank < result.spans.size(); ++rank) {
    result.idle.push_back(result.makespan - result.busy[rank]);
    if (result.spans[rank].empty()) continue;
    const std::int64_t span = result.spans[rank].back().end - result.spans[rank].front().start;
    if (span <= result.longest_span) continue;
    result.longest_span = span;
    result.longest_rank = rank;
  }
}

void list_bubbles(const std::vector<Action>& actions, std::uint32_t rank, Execution& result) {
  std::int64_t free = 0;
  bool backward_seen = false;
  const auto add = [&](std::int64_t start, std::int64_t end, BubbleKind kind) {
    if (end > start) result.bubbles.push_back({rank, start, end - start, kind});
  };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool first_backward = !backward_seen && actions[i].kind != ActionKind::kForward;
    backward_seen = backward_seen || first_backward;
    const Span& span = result.spans[rank][i];
    add(free, span.start, i == 0            ? BubbleKind::kFillDrain
                          : first_backward ? BubbleKind::kBetween
                                           : BubbleKind::kGap);
    free = span.end;
  }
  add(free, result.makespan, BubbleKind::kFillDrain);
}

// Memory follows from the order alone: a rank runs one action at a time.
std::int64_t peak_of(const std::vector<Action>& actions, const StageGraph& graph,
                     const ActivationUnits& units) {
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const Action& action : actions) {
    const auto size = [&](std::uint32_t stage) -> std::int64_t {
      return graph.stages[stage].micro_batch_size;
    };
    if (action.has_forward()) held += units.forward * size(action.stage);
    peak = std::max(peak, held);
    const std::int64_t back = size(action.backward_stage());
    if (action.kind == ActionKind::kInputGrad) {
      held -= (units.forward - units.after_input_grad) * back;
    } else if (action.kind == ActionKind::kWeightGrad) {
      held -= units.after_input_grad * back;
    } else if (action.has_input_grad()) {
      held -= units.forward * back;
    }
  }
  return peak;
}

}  // namespace

std::int64_t UnitTimes::duration(const Action& action) const {
  const StageTimes& back = at_stage(action.backward_stage());
  switch (action.kind) {
    case ActionKind::kForward: return back.forward;
    case ActionKind::kInputGrad: return back.input_grad;
    case ActionKind::kWeightGrad: return back.weight_grad;
    case ActionKind::kBackward: return backward_of(action.stage);
    case ActionKind::kOverlapped:
      return overlapped.value_or(at_stage(action.stage).forward + backward_of(action.other_stage));
  }
  return 0;
}

double Execution::span_bubble_fraction() const {
  if (longest_span == 0) return 0;
  return static_cast<double>(span_bubble()) / static_cast<double>(longest_span);
}

double Execution::makespan_bubble_fraction() const {
  double all = 0;
  for (const std::int64_t duration : idle) all += static_cast<double>(duration);
  const double whole = static_cast<double>(makespan) * static_cast<double>(idle.size());
  return whole == 0 ? 0 : all / whole;
}

double Execution::contiguous_fraction() const {
  double all = 0;
  double contiguous = 0;
  for (const ScheduleBubble& bubble : bubbles) {
    all += static_cast<double>(bubble.length);
    if (bubble.kind != BubbleKind::kGap) contiguous += static_cast<double>(bubble.length);
  }
  return all == 0 ? 0 : contiguous / all;
}

Execution execute(const Schedule& schedule, const StageGraph& graph, const UnitTimes& times,
                  const ActivationUnits& units) {
  Execution result;
  place_actions(schedule, graph, times, result);
  measure_spans(result);
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    list_bubbles(schedule.actions[rank], rank, result);
    result.peak_activations.push_back(peak_of(schedule.actions[rank], graph, units));
  }
  return result;
}

const char* bubble_kind_name(BubbleKind kind) {
  switch (kind) {
    case BubbleKind::kFillDrain: return "fill-drain";
    case BubbleKind::kBetween: return "between";
    case BubbleKind::kGap: return "gap";
  }
  return "";
}

namespace {

struct Setting {
  std::int64_t p, m, v;
  std::int64_t f, i, w, b;
  std::int64_t pair;  // F and B at once
  ActivationUnits units;
};

using Peak = std::int64_t (*)(const Setting&, std::int64_t rank);

std::vector<std::int64_t> peaks_of(const Setting& s, Peak peak) {
  std::vector<std::int64_t> peaks;
  for (std::int64_t rank = 0; rank < s.p; ++rank) peaks.push_back(peak(s, rank));
  return peaks;
}

ClosedForm sequential(const Setting& s) {
  return {BubbleMeasure::kMakespan, s.m * (s.p - 1) * (s.f + s.b), "m(p-1)(F+B)",
          "one micro-batch at a time",
          peaks_of(s, [](const Setting& t, std::int64_t) { return t.units.forward; })};
}

ClosedForm gpipe(const Setting& s) {
  return {BubbleMeasure::kMakespan, (s.p - 1) * (s.f + s.b), "(p-1)(F+B)",
          "arXiv 1811.06965, section 2.3; arXiv 2104.04473, section 2.2.1",
          peaks_of(s, [](const Setting& t, std::int64_t) { return t.m * t.units.forward; })};
}

ClosedForm one_forward_one_backward(const Setting& s) {
  return {BubbleMeasure::kMakespan, (s.p - 1) * (s.f + s.b), "(p-1)(F+B)",
          "arXiv 2104.04473, section 2.2.1",
          peaks_of(s, [](const Setting& t, std::int64_t rank) {
            return std::min(t.p - rank, t.m) * t.units.forward;
          })};
}

ClosedForm interleaved(const Setting& s) {
  return {BubbleMeasure::kMakespan, (s.p - 1) * (s.f + s.b),
          "(p-1)(F+B), of a chunk: 1/v of what 1F1B idles", "arXiv 2104.04473, section 2.2.2",
          peaks_of(s, [](const Setting& t, std::int64_t rank) {
            return std::min(2 * (t.p - 1 - rank) + (t.v - 1) * t.p + 1, t.m * t.v) *
                   t.units.forward;
          })};
}

std::optional<ClosedForm> zb_h1(const Setting& s) {
  if (s.w > s.f || s.w > s.i || s.m < s.p) return std::nullopt;
  return ClosedForm{BubbleMeasure::kMakespan, (s.p - 1) * (s.f + s.i - s.w), "(p-1)(F+I-W)",
                    "arXiv 2401.10241, table 2",
                    peaks_of(s, [](const Setting& t, std::int64_t rank) {
                      return (t.p - rank) * t.units.forward + rank * t.units.after_input_grad;
                    })};
}

std::optional<ClosedForm> zb_h2(const Setting& s) {
  if (s.w > s.f || 2 * s.w > s.f + s.i || s.m < 2 * s.p - 1) return std::nullopt;
  return ClosedForm{BubbleMeasure::kSpan, (s.p - 1) * (s.f + s.i - 2 * s.w), "(p-1)(F+I-2W)",
                    "arXiv 2401.10241, table 2",
                    peaks_of(s, [](const Setting& t, std::int64_t rank) {
                      return (2 * (t.p - rank) - 1) * t.units.forward +
                             2 * rank * t.units.after_input_grad;
                    })};
}

// Peaks hold where a micro-batch keeps all of its activations until W.
std::optional<ClosedForm> zb_v(const Setting& s) {
  if (s.f != s.i || s.f != s.w || s.m < 2 * s.p - 1) return std::nullopt;
  if (s.units.forward != s.units.after_input_grad) return std::nullopt;
  return ClosedForm{BubbleMeasure::kSpan, 0, "0 where F = I = W",
                    "arXiv 2401.10241, section 6",
                    peaks_of(s, [](const Setting& t, std::int64_t) {
                      return 2 * t.p * t.units.forward;
                    })};
}

// `half` is PP/2 of the source. Its formula holds where I = F and W <= F.
std::optional<ClosedForm> dual(const Setting& s, std::int64_t half) {
  if (s.f != s.i || s.w > s.f || s.b != s.i + s.w || s.pair != s.f + s.b) return std::nullopt;
  if (s.units.forward != s.units.after_input_grad) return std::nullopt;
  return ClosedForm{BubbleMeasure::kMakespan, (half - 1) * (s.pair + s.b - 3 * s.w),
                    "(PP/2-1)(F&B+B-3W)", "github.com/deepseek-ai/DualPipe, README",
                    std::vector<std::int64_t>(static_cast<std::size_t>(s.p),
                                              (2 * half + 1) * s.units.forward)};
}

std::optional<ClosedForm> chimera(const Setting& s) {
  if (s.f != s.b || s.m % s.p != 0) return std::nullopt;
  return ClosedForm{BubbleMeasure::kMakespan, (s.p - 2) * s.f,
                    "(D-2)F where F = B: (D-2)/(2N+D-2) of the time, D = p, N = m",
                    "arXiv 2107.06925, table 2",
                    peaks_of(s, [](const Setting& t, std::int64_t rank) {
                      const std::int64_t inward = std::min(rank, t.p - 1 - rank);
                      return (t.p / 2 + 1 + inward) * t.units.forward;
                    })};
}

}  // namespace

std::optional<ClosedForm> closed_form(std::string_view name, const ScheduleRequest& request,
                                      const UnitTimes& times, const ActivationUnits& units) {
  if (times.p2p != 0 || !times.by_stage.empty() || request.graph) return std::nullopt;
  const StageTimes& stage = times.every_stage;
  const Setting s{request.ranks,    request.micro_batches,
                  request.chunks == 0 ? 2 : request.chunks,
                  stage.forward,      stage.input_grad,
                  stage.weight_grad,  times.backward_of(0),
                  times.overlapped.value_or(stage.forward + times.backward_of(0)), units};
  if (name == "sequential") return sequential(s);
  if (name == "gpipe") return gpipe(s);
  if (name == "1f1b" || name == "graph") return one_forward_one_backward(s);
  if (name == "interleaved") {
    if (s.v == 1) return one_forward_one_backward(s);
    if (request.group > request.ranks) return std::nullopt;
    return interleaved(s);
  }
  if (name == "zb-h1") return zb_h1(s);
  if (name == "zb-h2") return zb_h2(s);
  if (name == "zb-v") return zb_v(s);
  if (name == "dualpipe") return dual(s, s.p / 2);
  if (name == "dualpipev") return dual(s, s.p);
  if (name == "chimera") return chimera(s);
  return std::nullopt;
}

}  // namespace bubblesim::pipeline

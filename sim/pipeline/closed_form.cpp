#include "sim/pipeline/closed_form.hpp"

#include <algorithm>

namespace bubblesim::pipeline {
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

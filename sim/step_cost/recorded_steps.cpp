#include "sim/step_cost/recorded_steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>

namespace bubblesim::step_cost {
namespace {

// Of a step: beyond what any engine computes at once.
constexpr double kMostTokens = 1e8;
constexpr double kMostKeys = 1e12;
constexpr double kRounding = 1e-9;  // relative
constexpr std::ptrdiff_t kMostWithin = 8;  // ranges that may end before the one that a call is in

constexpr CounterSpec kWithoutKernels{"steps_without_kernels", Severity::kLoss,
                                      "steps that the trace names and of which it has no kernel; "
                                      "they are left out"};
constexpr CounterSpec kEmpty{"steps_without_tokens", Severity::kInfo,
                             "steps that computed nothing, such as warm-up; they are left out"};
constexpr CounterSpec kImpossible{"steps_with_impossible_sums", Severity::kLoss,
                                  "steps whose names have sums that no sequences have; they are "
                                  "left out"};
constexpr CounterSpec kAssumed{"contexts_assumed", Severity::kNotice,
                               "steps whose names do not say how much the cache holds; --context "
                               "stands in"};
constexpr CounterSpec kElsewhere{"kernels_of_no_step", Severity::kInfo,
                                 "kernels that were launched outside of all named steps, or before "
                                 "the trace began"};

using Match = std::match_results<std::string_view::const_iterator>;

/// Of either form; a group that did not take part is empty.
bool match(std::string_view name, Match& found) {
  static const std::regex pattern(
      R"(execute_(?:\d+_)?context_(\d{1,18})\()"
      R"((?:(\d{1,18})|sq(\d{1,18})sk(\d{1,18})sqsq(\d{1,18})sqsk(\d{1,18}))\))"
      R"(_generation_(\d{1,18})\()"
      R"((?:(\d{1,18})|sq(\d{1,18})sk(\d{1,18})sqsq(\d{1,18})sqsk(\d{1,18}))\))");
  return std::regex_match(name.begin(), name.end(), found, pattern);
}

double number(const Match& found, std::size_t group) { return std::stod(found[group].str()); }

// Equally long, each with so much of the cache. Tokens of no sequence stay, for can_be to refuse.
StepSums equal_sums(double sequences, double tokens, double cached) {
  if (sequences <= 0) return {0, tokens, 0, 0, 0};
  const double squares = tokens * (tokens / sequences);
  return {sequences, tokens, sequences * cached + tokens, squares, tokens * cached + squares};
}

// From the group of the number of sequences on.
StepSums sums_of(const Match& found, std::size_t first, double cached) {
  const double sequences = number(found, first);
  if (found[first + 1].matched) return equal_sums(sequences, number(found, first + 1), cached);
  return {sequences, number(found, first + 2), number(found, first + 3), number(found, first + 4),
          number(found, first + 5)};
}

struct Span {
  TraceTime start{}, end{};
  RecordedStep step;
  std::vector<const traces::DeviceOp*> ops;
};

/// By thread, in order of their start.
using Spans = std::map<std::uint32_t, std::vector<Span>>;

struct NamedSpans {
  Spans spans;
  std::string_view impossible;  ///< a name that was counted as kImpossible
};

Span* span_at(Spans& spans, const traces::HostCall& call) {
  const auto thread = spans.find(call.thread.value);
  if (thread == spans.end()) return nullptr;
  const auto after = std::ranges::upper_bound(thread->second, call.start, {}, &Span::start);
  // Of ranges within each other, the inner one.
  for (auto span = after; span != thread->second.begin();) {
    if (call.start < (--span)->end) return &*span;
    if (std::distance(span, after) >= kMostWithin) break;
  }
  return nullptr;
}

// Of steps that compute something; counts what it leaves out.
Result<NamedSpans> named_spans(const traces::RankTrace& trace, std::optional<double> context,
                               RecordedSteps& out) {
  NamedSpans named;
  for (const traces::Marker& marker : trace.markers) {
    const std::string_view name = trace.names[marker.name];
    const auto step = step_of_name(name, context.value_or(1));
    if (!step) continue;
    if (step->prompts.tokens + step->singles.tokens < 1) {
      out.counters.add(kEmpty);
      continue;
    }
    if (!can_be(step->prompts) || !can_be(step->singles)) {
      out.counters.add(kImpossible);
      named.impossible = name;
      continue;
    }
    if (!tells_contexts(name) && step->singles.tokens > 0) {
      if (!context) {
        return fail(out.source, {}, "its steps, as \"" + std::string(name) +
                                        "\", do not say how much the cache holds; expected "
                                        "--context TOKENS, the mean of sequences that generate");
      }
      out.counters.add(kAssumed);
    }
    named.spans[marker.thread.value].push_back(
        {marker.start, marker.start + marker.duration, *step, {}});
  }
  for (auto& [thread, list] : named.spans) std::ranges::stable_sort(list, {}, &Span::start);
  return named;
}

/// Each span gets what its thread launched in it.
void give_ops(const traces::RankTrace& trace, Spans& spans, CounterSet& counters) {
  for (const traces::DeviceOp& op : trace.device_ops) {
    if (op.kind != traces::DeviceOpKind::kKernel && op.kind != traces::DeviceOpKind::kCollective) {
      continue;
    }
    Span* const span =
        op.launch == traces::kNone ? nullptr : span_at(spans, trace.host_calls[op.launch]);
    if (span == nullptr) counters.add(kElsewhere);
    else span->ops.push_back(&op);
  }
}

std::vector<const Span*> in_order(const Spans& spans) {
  std::vector<const Span*> out;
  for (const auto& [thread, list] : spans) {
    for (const Span& span : list) out.push_back(&span);
  }
  std::ranges::stable_sort(out, {}, &Span::start);
  return out;
}

// Operations are in the order of their starts. One that was launched before the last one ended
// waited for the device alone: the gap between them is the device's.
double kernels_us(const std::vector<const traces::DeviceOp*>& ops, const traces::RankTrace& trace) {
  Duration busy{};
  TraceTime end{};
  bool follows = false;  // a kernel, and no collective
  for (const traces::DeviceOp* op : ops) {
    if (op->kind == traces::DeviceOpKind::kCollective) {
      follows = false;
    } else {
      const bool queued = follows && trace.host_calls[op->launch].end() <= end;
      const TraceTime from = queued ? end : std::max(end, op->start);
      busy += std::max(Duration{}, op->end() - from);
      follows = true;
    }
    end = std::max(end, op->end());
  }
  return 1e6 * to_seconds(busy);
}

std::string why_none(const NamedSpans& named, const CounterSet& counters) {
  if (!named.spans.empty()) return "has no kernel of any step that it names";
  if (const std::uint64_t impossible = counters.count(kImpossible.name); impossible > 0) {
    return "has no step but " + std::to_string(impossible) +
           " with sums that no sequences have, as \"" + std::string(named.impossible) +
           "\"; expected " + std::string(kSumsThatCanBe);
  }
  return "names no step of an engine that computes something; expected ranges as "
         "\"execute_context_1(512)_generation_8(8)\", which vLLM and SGLang write under a profiler";
}

// Least of equal sequences, up to their rounding; most if all but one have a single token.
bool squares_can_be(const StepSums& sums) {
  const double rest = sums.sequences - 1;
  const double longest = sums.tokens - rest;
  return sums.squares * sums.sequences >= sums.tokens * sums.tokens * (1 - kRounding) &&
         sums.squares <= longest * longest + rest;
}

}  // namespace

bool can_be(const StepSums& sums) {
  const auto whole = [](double value) { return std::floor(value) == value; };
  if (sums.tokens <= 0) return sums == StepSums{};
  return whole(sums.sequences) && whole(sums.tokens) && sums.sequences >= 1 &&
         sums.sequences <= sums.tokens && sums.tokens <= sums.keys &&
         squares_can_be(sums) && sums.squares <= sums.products &&
         sums.products <= sums.tokens * sums.keys &&
         sums.tokens <= kMostTokens && sums.keys <= kMostKeys;
}

std::optional<RecordedStep> step_of_name(std::string_view name, double context) {
  Match found;
  if (!match(name, found)) return std::nullopt;
  // A generating sequence attends to its new token too.
  return RecordedStep{sums_of(found, 1, 0), sums_of(found, 7, context - 1), 0};
}

bool tells_contexts(std::string_view name) {
  Match found;
  return match(name, found) && !found[2].matched && !found[8].matched;
}

Result<RecordedSteps> recorded_steps(const traces::RankTrace& trace,
                                     std::optional<double> context) {
  RecordedSteps out;
  out.gpu = trace.device.name;
  out.source = trace.provenance.source;
  BUBBLESIM_ASSIGN_OR_RETURN(NamedSpans named, named_spans(trace, context, out));
  give_ops(trace, named.spans, out.counters);
  for (const Span* span : in_order(named.spans)) {
    RecordedStep step = span->step;
    step.kernels_us = kernels_us(span->ops, trace);
    if (step.kernels_us <= 0) out.counters.add(kWithoutKernels);
    else out.steps.push_back(step);
  }
  if (!out.steps.empty()) return out;
  return fail(out.source, {}, why_none(named, out.counters));
}

}  // namespace bubblesim::step_cost

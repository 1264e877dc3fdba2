#include "sim/app/schedule_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "sim/app/app.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/pipeline/render.hpp"

namespace bubblesim::app {
namespace {

using pipeline::BubbleKind;
using pipeline::BubbleMeasure;
using pipeline::Execution;
using pipeline::UnitTimes;

// Sums of these over the actions of the largest table stay below 2^63.
constexpr std::int64_t kMaxUnitTime = 100'000'000'000;
constexpr std::array<std::string_view, 6> kTimeNames = {"F", "I", "W", "p2p", "B", "FB"};

Result<void> set_time(UnitTimes& times, std::string_view name, std::int64_t value) {
  if (name == "F") times.every_stage.forward = value;
  else if (name == "I") times.every_stage.input_grad = value;
  else if (name == "W") times.every_stage.weight_grad = value;
  else if (name == "B") times.backward = value;
  else if (name == "FB") times.overlapped = value;
  else if (name == "p2p") times.p2p = value;
  else return fail("--times: " + unknown_name_message("time", name, kTimeNames));
  return {};
}

std::string by_rank(const std::vector<std::int64_t>& values) {
  const bool equal = std::adjacent_find(values.begin(), values.end(),
                                        std::not_equal_to<>()) == values.end();
  if (equal && values.size() > 1) return fmt::format("{} on every rank", values.front());
  return fmt::format("{}", fmt::join(values, " "));
}

// A double: over all ranks a sum of long times may pass 2^63.
double total(const Execution& execution, BubbleKind kind) {
  double sum = 0;
  for (const pipeline::ScheduleBubble& bubble : execution.bubbles) {
    if (bubble.kind == kind) sum += static_cast<double>(bubble.length);
  }
  return sum;
}

std::string times_text(const UnitTimes& times) {
  return fmt::format("F={} I={} W={} B={} p2p={}", times.every_stage.forward,
                     times.every_stage.input_grad, times.every_stage.weight_grad,
                     times.backward_of(0), times.p2p);
}

std::string form_text(const Execution& execution, const pipeline::ClosedForm& form) {
  const bool span = form.measure == BubbleMeasure::kSpan;
  const std::int64_t found =
      span ? execution.span_bubble()
           : *std::max_element(execution.idle.begin(), execution.idle.end());
  return fmt::format(
      "closed form            {} = {} idle a rank in its {}; here {}\n"
      "                       {}\n"
      "peak by closed form    {}\n",
      form.formula, form.bubble, span ? "span" : "makespan", found, form.source,
      by_rank(form.peaks));
}

}  // namespace

Result<UnitTimes> parse_unit_times(const std::string& text) {
  UnitTimes times;
  std::vector<std::string> given;
  for (const std::string& part : split_list(text)) {
    const std::size_t equals = part.find('=');
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : parse_number<std::int64_t>(part.substr(equals + 1));
    if (!value || *value < 0 || *value > kMaxUnitTime) {
      return fail("--times: found " + quote_found(part) +
                  "; expected NAME=WHOLE NUMBER such as F=10, at most 100000000000 (for "
                  "F=1, I=1.2, W=0.8 write F=10,I=12,W=8)");
    }
    const std::string name = part.substr(0, equals);
    BUBBLESIM_RETURN_IF_ERROR(set_time(times, name, *value));
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      return fail("--times: found " + name + " twice; expected it once");
    }
    given.push_back(name);
  }
  return times;
}

std::string unused_times_text(const UnitTimes& times, const pipeline::Schedule& schedule) {
  const auto has = [&](pipeline::ActionKind kind) {
    return std::any_of(schedule.actions.begin(), schedule.actions.end(), [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const pipeline::Action& action) { return action.kind == kind; });
    });
  };
  const bool overlaps = has(pipeline::ActionKind::kOverlapped);
  std::string text;
  if (times.backward && !has(pipeline::ActionKind::kBackward) && !(overlaps && !times.overlapped)) {
    text += "note: B changes nothing: every backward pass of this table is split, into I and W\n";
  }
  if (times.overlapped && !overlaps) {
    text += "note: FB changes nothing: this table has no forward and backward pass at once\n";
  }
  return text;
}

Result<std::vector<pipeline::StageEdge>> parse_edges(const std::string& text) {
  std::vector<pipeline::StageEdge> edges;
  for (const std::string& part : split_list(text)) {
    const std::size_t dash = part.find('-');
    const auto producer = parse_number<std::uint32_t>(part.substr(0, dash));
    const auto consumer = dash == std::string::npos
                              ? std::nullopt
                              : parse_number<std::uint32_t>(part.substr(dash + 1));
    if (!producer || !consumer) {
      return fail("--edges: found " + quote_found(part) +
                  "; expected PRODUCER-CONSUMER such as 0-1");
    }
    edges.emplace_back(*producer, *consumer);
  }
  return edges;
}

Result<std::vector<std::uint32_t>> parse_sizes(const std::string& text) {
  std::vector<std::uint32_t> sizes;
  for (const std::string& part : split_list(text)) {
    const auto size = parse_number<std::uint32_t>(part);
    if (!size) {
      return fail("--sizes: found " + quote_found(part) + "; expected whole numbers such as 1,1,2");
    }
    sizes.push_back(*size);
  }
  return sizes;
}

std::string schedule_text(const pipeline::Schedule& schedule, const UnitTimes& times,
                          const Execution& execution,
                          const std::optional<pipeline::ClosedForm>& form) {
  std::string text = fmt::format("{}: {} ranks, {} stages, {} micro-batches; {}\n\n",
                                 schedule.name, schedule.ranks, schedule.stages,
                                 schedule.micro_batches, times_text(times));
  text += pipeline::render_grid(schedule, execution);
  text += fmt::format(
      "\nmakespan               {}\n"
      "bubble, makespan       {:.2f} %\n"
      "bubble, per-stage span {:.2f} %  (longest span {}, rank {}, idle {})\n"
      "idle, all ranks        fill-drain {:.0f}, between {:.0f}, gaps {:.0f}; contiguous {:.1f} %\n"
      "peak activations       {}  (micro-batches of one stage)\n",
      execution.makespan, 100 * execution.makespan_bubble_fraction(),
      100 * execution.span_bubble_fraction(), execution.longest_span, execution.longest_rank,
      execution.span_bubble(), total(execution, BubbleKind::kFillDrain),
      total(execution, BubbleKind::kBetween), total(execution, BubbleKind::kGap),
      100 * execution.contiguous_fraction(), by_rank(execution.peak_activations));
  if (form) text += form_text(execution, *form);
  return text;
}

}  // namespace bubblesim::app

#include "sim/validate/judges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "sim/pipeline/closed_form.hpp"
#include "sim/pipeline/execute.hpp"
#include "sim/pipeline/registry.hpp"

namespace bubblesim::validate {
namespace {

using pipeline::ScheduleRequest;
using pipeline::UnitTimes;

constexpr std::array<std::uint32_t, 5> kDepths{2, 4, 8, 16, 32};
constexpr std::array<std::uint32_t, 5> kMultiples{1, 2, 3, 4, 8};
constexpr std::array<std::uint32_t, 3> kChunks{0, 1, 4};

// Of F, I and W: the schedules' closed forms hold for different ones.
constexpr std::array<pipeline::StageTimes, 5> kTimes{{
    {1, 1, 1}, {10, 12, 8}, {5, 5, 3}, {2, 1, 1}, {7, 4, 3}}};

struct Count {
  int cases = 0;
  int equal = 0;
};

std::vector<ScheduleRequest> requests(const std::string& name) {
  std::vector<ScheduleRequest> out;
  for (const std::uint32_t p : kDepths) {
    for (const std::uint32_t k : kMultiples) {
      for (const std::uint32_t extra : {0U, 2U}) {
        for (const std::uint32_t chunks : kChunks) {
          if (chunks != 0 && name != "interleaved") continue;
          ScheduleRequest request;
          request.ranks = p;
          request.micro_batches = k * p + extra;
          request.chunks = chunks;
          out.push_back(std::move(request));
        }
      }
    }
  }
  return out;
}

bool equals(const pipeline::Execution& run, const pipeline::ClosedForm& form) {
  const bool bubble =
      form.measure == pipeline::BubbleMeasure::kSpan
          ? run.span_bubble() == form.bubble
          : std::all_of(run.idle.begin(), run.idle.end(),
                        [&](std::int64_t idle) { return idle == form.bubble; });
  return bubble && run.peak_activations == form.peaks;
}

// Sizes that the schedule's rule refuses are no cases, nor are those without a closed form.
Count compare(const std::string& name) {
  Count count;
  for (const ScheduleRequest& request : requests(name)) {
    const auto made = pipeline::make_schedule(name, request);
    if (!made) continue;
    for (const pipeline::StageTimes& stage : kTimes) {
      UnitTimes times;
      times.every_stage = stage;
      const auto form = pipeline::closed_form(name, request, times);
      if (!form) continue;
      ++count.cases;
      if (equals(pipeline::execute(made->schedule, made->graph, times), *form)) ++count.equal;
    }
  }
  return count;
}

ReportRow schedule_row(const std::string& name) {
  const Count count = compare(name);
  ReportRow out;
  out.table = "schedules";
  out.label = name + ": cases that equal the closed form";
  out.unit = "cases";
  out.measured = count.cases;
  out.simulated = count.equal;
  if (count.cases == 0) {
    out.outcome = RowOutcome::kStated;
    out.note = "no closed form is known";
  }
  return out;
}

constexpr std::uint32_t kCaseMicroBatches = 32;  // 64 samples in micro-batches of 2
constexpr std::uint32_t kCaseStages = 8;

Result<std::int64_t> case_makespan(const std::vector<pipeline::StageEdge>& edges) {
  ScheduleRequest request;
  request.ranks = kCaseStages;
  request.micro_batches = kCaseMicroBatches;
  BUBBLESIM_ASSIGN_OR_RETURN(
      request.graph, pipeline::make_stage_graph(kCaseStages, edges, {}, kCaseMicroBatches));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto made, pipeline::make_schedule("graph", request));
  return pipeline::execute(made.schedule, made.graph, UnitTimes{}).makespan;
}

}  // namespace

std::vector<ReportRow> judge_schedules() {
  std::vector<ReportRow> out;
  for (const pipeline::ScheduleSpec& spec : pipeline::schedule_specs()) {
    out.push_back(schedule_row(spec.name));
  }
  return out;
}

Result<std::vector<ReportRow>> judge_graphpipe() {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const std::int64_t deep,
      case_makespan({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const std::int64_t wide, case_makespan({{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 7}}));
  ReportRow gain;
  gain.table = "graphpipe";
  gain.label = fmt::format("throughput of depth 4 over depth 8, {} equal micro-batches",
                           kCaseMicroBatches);
  gain.unit = "times";
  gain.measured = 1.10;
  gain.simulated = static_cast<double>(deep) / static_cast<double>(wide);
  ReportRow rest = gain;
  rest.label = "throughput of depth 4 and micro-batch 4 over depth 8 and micro-batch 2";
  rest.outcome = RowOutcome::kStated;
  rest.note = "published: 1.20; half of it is kernels of twice the size, whose shapes the paper "
              "does not give";
  return std::vector<ReportRow>{std::move(gain), std::move(rest)};
}

}  // namespace bubblesim::validate

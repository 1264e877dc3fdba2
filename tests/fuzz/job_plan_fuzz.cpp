// Any bytes as a job plan: refused with faults, or read into a plan whose indices hold and that is
// written and read back as the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "capture/replay/job_plan_file.hpp"

namespace {

using namespace bubblesim::capture;

bool launches_hold(const JobPlan& plan) {
  for (const PlanThread& thread : plan.threads) {
    for (const PlanStep& step : thread.steps) {
      const bool launches =
          step.kind == PlanStepKind::kLaunch || step.kind == PlanStepKind::kLaunchAndWait;
      if (launches && std::uint64_t{step.target} + step.count > plan.ops.size()) return false;
      if (step.after_thread != kNone && step.after_thread >= plan.threads.size()) return false;
    }
  }
  return true;
}

bool operations_hold(const JobPlan& plan) {
  for (const PlanOp& op : plan.ops) {
    if (op.stream >= plan.stream_count || op.name >= plan.names.size()) return false;
    if (op.form != kNone && op.form >= plan.forms.size()) return false;
    if (std::uint64_t{op.first_edge} + op.edge_count > plan.edges.size()) return false;
  }
  for (const PlanEdge& edge : plan.edges) {
    if (edge.before >= plan.ops.size()) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = parse_job_plan(std::string(data, data + size), "fuzz.json");
  if (!plan) return 0;
  if (!launches_hold(*plan) || !operations_hold(*plan)) std::abort();
  const std::string text = job_plan_text(*plan);
  const auto again = parse_job_plan(text, "again.json");
  if (!again || job_plan_text(*again) != text) std::abort();
  return 0;
}

// Any bytes as a job plan: refused with faults, or read into a plan whose indices hold and that is
// written and read back as the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "capture/replay/job_plan_file.hpp"

namespace {

using namespace bubblesim::capture;
namespace program = bubblesim::program;

bool launches_hold(const JobPlan& plan) {
  for (const program::ThreadProgram& thread : plan.program.threads) {
    for (const program::Step& step : thread.steps) {
      const bool launches =
          step.kind == program::StepKind::kLaunch || step.kind == program::StepKind::kLaunchAndWait;
      if (launches && std::uint64_t{step.target} + step.count > plan.program.ops.size())
        return false;
      if (step.detail != program::kNoIndex && step.detail >= plan.program.details.size()) {
        return false;
      }
    }
  }
  return true;
}

bool operations_hold(const JobPlan& plan) {
  for (const program::Op& op : plan.program.ops) {
    if (op.stream >= plan.program.stream_count || op.name.index() >= plan.program.names.size())
      return false;
    const std::size_t forms = is_kernel(op.kind) ? plan.forms.size() : plan.copies.size();
    if (op.profile != program::kNoIndex && op.profile >= forms) return false;
    if (std::uint64_t{op.first_edge} + op.edge_count > plan.program.edges.size()) return false;
  }
  for (const program::OpEdge& edge : plan.program.edges) {
    if (edge.before >= plan.program.ops.size()) return false;
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

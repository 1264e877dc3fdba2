// A program::Program as a capture::JobPlan.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "sim/measure/job_plans.hpp"
#include "sim/measure/kernel_forms.hpp"

namespace bubblesim::measure {
namespace {

using capture::CopyPath;
using capture::JobPlan;
using capture::PlanOp;
using capture::PlanStep;
using capture::PlanStepKind;
using program::kNoIndex;

PlanStepKind kind_of(program::StepKind kind) {
  switch (kind) {
    case program::StepKind::kPause: return PlanStepKind::kPause;
    case program::StepKind::kLaunch: return PlanStepKind::kLaunch;
    case program::StepKind::kLaunchAndWait: return PlanStepKind::kLaunchAndWait;
    case program::StepKind::kWaitStream: return PlanStepKind::kWaitStream;
    case program::StepKind::kWaitDevice: return PlanStepKind::kWaitDevice;
    case program::StepKind::kWaitOp: return PlanStepKind::kWaitOp;
    case program::StepKind::kIteration: return PlanStepKind::kIteration;
    case program::StepKind::kEnd: return PlanStepKind::kEnd;
  }
  return PlanStepKind::kPause;
}

// Profilers put the direction into the name: "Memcpy DtoH (Device -> Pinned)".
CopyPath path_of(std::string_view name) {
  if (name.find("DtoH") != std::string_view::npos) return CopyPath::kDeviceToHost;
  if (name.find("DtoD") != std::string_view::npos) return CopyPath::kDeviceToDevice;
  if (name.find("PtoP") != std::string_view::npos) return CopyPath::kDeviceToDevice;
  return CopyPath::kHostToDevice;
}

PlanStep step_of(const program::Step& step, const program::Program& program) {
  PlanStep out;
  out.kind = kind_of(step.kind);
  out.think = step.think.duration();
  out.cost = step.cost.duration();
  out.target = step.target;
  out.count = step.count;
  if (step.detail == kNoIndex) return out;
  const program::StepDetail& detail = program.details[step.detail];
  // A real host that runs a pass ahead is held by the real launch queue.
  if (detail.passes_back > 0) out.kind = PlanStepKind::kPause;
  out.return_lag = detail.return_lag.duration();
  out.after_thread = detail.after_thread == kNoIndex ? capture::kNone : detail.after_thread;
  out.after_step = detail.after_step;
  return out;
}

const std::string kUnnamed = "(unnamed)";

/// Makes operations; names and forms that are equal are one.
class OpWriter {
 public:
  OpWriter(const program::Program& program, const hardware::GpuSpec& device, double slowdown,
           JobPlan& plan)
      : program_(program), device_(device), slowdown_(slowdown), plan_(plan) {}

  void write(const program::Op& op) {
    const bool named = op.name.index() < program_.names.size();
    const std::string& name = named ? program_.names[op.name] : kUnnamed;
    PlanOp out;
    out.kind = op.kind;
    out.stream = op.stream;
    out.name = name_of(op.name, name);
    if (op.profile != kNoIndex) out.form = form_of_op(op.profile, name);
    const bool own_span = op.kind == program::WorkKind::kCollective || slowdown_ == 1;
    out.solo = own_span ? op.duration : scale(op.duration, slowdown_);
    out.path = path_of(name);
    out.first_edge = op.first_edge;
    out.edge_count = op.edge_count;
    out.launch_lag = op.launch_lag.duration();
    out.gap = op.gap.duration();
    plan_.ops.push_back(out);
  }

 private:
  std::uint32_t name_of(NameId id, const std::string& name) {
    const auto [place, fresh] =
        names_.try_emplace(id, static_cast<std::uint32_t>(plan_.names.size()));
    if (fresh) plan_.names.push_back(name);
    return place->second;
  }

  std::uint32_t form_of_op(std::uint32_t profile, const std::string& name) {
    const traces::LaunchShape* shape =
        program_.shapes.size() == program_.profiles.size() ? &program_.shapes[profile] : nullptr;
    const capture::KernelForm form =
        form_of(program_.profiles[profile], shape, name, device_);
    const auto [place, fresh] =
        forms_.try_emplace(form, static_cast<std::uint32_t>(plan_.forms.size()));
    if (fresh) plan_.forms.push_back(form);
    return place->second;
  }

  const program::Program& program_;
  const hardware::GpuSpec& device_;
  double slowdown_;
  JobPlan& plan_;
  std::map<NameId, std::uint32_t> names_;
  std::map<capture::KernelForm, std::uint32_t> forms_;
};

}  // namespace

capture::JobPlan plan_of_program(const program::Program& program,
                                 const hardware::GpuSpec& device, double slowdown) {
  JobPlan plan;
  plan.rank = program.rank;
  for (const program::ThreadProgram& thread : program.threads) {
    plan.threads.push_back({thread.name, {}});
    for (const program::Step& step : thread.steps) {
      plan.threads.back().steps.push_back(step_of(step, program));
    }
  }
  OpWriter writer(program, device, slowdown, plan);
  for (const program::Op& op : program.ops) writer.write(op);
  for (const program::OpEdge& edge : program.edges) {
    plan.edges.push_back({edge.before, edge.lag.duration()});
  }
  plan.stream_count = program.stream_count;
  plan.iterations = program.iterations;
  plan.marked_thread = program.marked_thread;
  plan.start_offset = program.start_offset;
  plan.as_recorded = program.own_kernels == program::OwnKernels::kAsRecorded;
  return plan;
}

}  // namespace bubblesim::measure

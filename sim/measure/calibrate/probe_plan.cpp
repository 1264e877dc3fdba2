#include "sim/measure/calibrate/probe_plan.hpp"

#include <algorithm>
#include <utility>


namespace bubblesim::measure {
namespace {

using capture::PlanStepKind;

constexpr std::uint32_t kProbeRegisters = 32;

}  // namespace

program::LaunchNeeds probe_needs(std::uint64_t blocks) {
  return {blocks, kProbeThreads, kProbeRegisters, 0};
}

capture::KernelForm probe_form(std::uint64_t blocks, program::KernelClass kernel_class,
                               const hardware::GpuSpec& spec) {
  const program::KernelProfile profile =
      program::profile_kernel(probe_needs(blocks), kernel_class, spec);
  capture::KernelForm form;
  form.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  form.shape.block = {kProbeThreads, 1, 1};
  form.shape.registers_per_thread = kProbeRegisters;
  form.bound = kernel_class;
  form.dram_share = profile.dram_share;
  form.issue_share = profile.issue_share;
  return form;
}

capture::KernelForm filling_form(const hardware::GpuSpec& spec) {
  const program::Residency residency = program::residency_of(probe_needs(1), spec.sm);
  return probe_form(std::uint64_t{residency.blocks_per_sm} * spec.sm_count,
                    program::KernelClass::kCompute, spec);
}

std::vector<ProbeKernel> filling_row(const hardware::GpuSpec& spec) {
  constexpr std::size_t kKernels = 48;
  return std::vector<ProbeKernel>(kKernels, {filling_form(spec), std::chrono::microseconds(100)});
}

ProbePlan::ProbePlan(std::string name, std::uint32_t client) {
  plan_.name = std::move(name);
  plan_.client = ClientId{client};
  plan_.stream_count = 1;
  plan_.threads.push_back({"probe", {}});
  plan_.record_operations = true;
  plan_.device_lags = true;
  step(PlanStepKind::kIteration, 0);
}

std::uint32_t ProbePlan::launch(const ProbeKernel& kernel) {
  capture::PlanOp op;
  op.form = form_index(kernel.form);
  op.solo = kernel.solo;
  return add(op, "kernel");
}

std::uint32_t ProbePlan::copy(capture::CopyPath path, Bytes bytes) {
  capture::PlanOp op;
  op.kind = program::WorkKind::kCopy;
  op.path = path;
  op.bytes = bytes;
  return add(op, "copy");
}

std::uint32_t ProbePlan::add(capture::PlanOp op, const std::string& name) {
  const auto known = std::ranges::find(plan_.names, name);
  op.name = static_cast<std::uint32_t>(known - plan_.names.begin());
  if (known == plan_.names.end()) plan_.names.push_back(name);
  plan_.ops.push_back(op);
  const auto index = static_cast<std::uint32_t>(plan_.ops.size() - 1);
  step(PlanStepKind::kLaunch, index, 1);
  return index;
}

std::uint32_t ProbePlan::form_index(const capture::KernelForm& form) {
  const auto known = std::ranges::find(plan_.forms, form);
  const auto index = static_cast<std::uint32_t>(known - plan_.forms.begin());
  if (known == plan_.forms.end()) plan_.forms.push_back(form);
  return index;
}

void ProbePlan::wait() { step(PlanStepKind::kWaitStream, 0); }
void ProbePlan::wait_for(std::uint32_t op) { step(PlanStepKind::kWaitOp, op); }
void ProbePlan::pause(Duration length) { step(PlanStepKind::kPause, 0, 0, length); }

void ProbePlan::row(std::span<const ProbeKernel> kernels) {
  std::uint32_t last = 0;
  for (const ProbeKernel& kernel : kernels) last = launch(kernel);
  for (const ProbeKernel& kernel : kernels) launch(kernel);
  wait_for(last);
}

void ProbePlan::step(PlanStepKind kind, std::uint32_t target, std::uint32_t count,
                     Duration think) {
  capture::PlanStep made;
  made.kind = kind;
  made.target = target;
  made.count = count;
  made.think = think;
  plan_.threads.front().steps.push_back(made);
}

capture::JobPlan ProbePlan::take(std::uint64_t passes, Duration start_offset) {
  step(PlanStepKind::kEnd, 0);
  plan_.loop = capture::LoopMode{passes};
  plan_.start_offset = start_offset;
  return std::move(plan_);
}

}  // namespace bubblesim::measure

#include "sim/measure/calibrate/probe.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/nearest_rank.hpp"

namespace bubblesim::measure {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.size(), interpolated_quantile(values, 0.25), interpolated_quantile(values, 0.5),
          interpolated_quantile(values, 0.75)};
}

RigSetup probe_run(policy::SharingMode mode, std::vector<capture::JobPlan> plans) {
  RigSetup run;
  run.substrate = capture::substrate_for(mode);
  run.sharing.mode = mode;
  run.shares.resize(plans.size());
  run.jobs = std::move(plans);
  return run;
}

RigSetup rehearsal(const RigSetup& run) {
  std::set<ProbeKernel> kernels;
  for (const capture::JobPlan& job : run.jobs) {
    for (const program::Op& op : job.program.ops) {
      if (is_kernel(op.kind)) kernels.insert({job.forms[op.profile], op.duration});
    }
  }
  ProbePlan plan("rehearsal", 0);
  for (const ProbeKernel& kernel : kernels) plan.launch(kernel);
  plan.wait();
  return probe_run(policy::SharingMode::kSpatial, {plan.take(1)});
}

Finding finding_of(std::string key, std::vector<double> values, double grain) {
  Finding finding{std::move(key), spread_of(std::move(values)), {}};
  const Spread& spread = finding.spread;
  const double width = spread.high - spread.low;
  if (spread.count < kLeastCount) {
    finding.missing = fmt::format("{} measurements, {} are needed", spread.count, kLeastCount);
  } else if (spread.middle < 0) {
    finding.missing = fmt::format("the median of {} measurements is negative", spread.count);
  } else if (width > grain && width > 0.5 * spread.middle) {
    finding.missing = fmt::format("the middle half of {} measurements is {:.0f} % of the median "
                                  "wide", spread.count, 100 * width / spread.middle);
  }
  return finding;
}

Finding at_least_zero(Finding finding) {
  const Spread& spread = finding.spread;
  const bool around = spread.low < 0 && spread.high > 0;
  const bool next_to = spread.middle < 0 && spread.middle > -kTimeGrain;
  if (spread.count < kLeastCount || (!around && !next_to)) return finding;
  finding.spread.middle = std::max(spread.middle, 0.0);
  finding.spread.high = std::max(spread.high, 0.0);
  finding.missing.clear();
  return finding;
}

double length_of(const capture::OperationRecord& operation) {
  return static_cast<double>(to_ns(operation.end - operation.start));
}

std::vector<capture::OperationRecord> by_start(const capture::JobRecord& record) {
  std::vector<capture::OperationRecord> list = record.operations;
  std::ranges::sort(list, {}, &capture::OperationRecord::start);
  return list;
}

namespace {

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

capture::KernelForm lone_block_form(std::uint64_t blocks, program::KernelClass kernel_class,
                                    const hardware::GpuSpec& spec) {
  capture::KernelForm form = probe_form(blocks, kernel_class, spec);
  form.shape.shared_memory_bytes = static_cast<std::uint32_t>(
      spec.sm.shared_memory_bytes / 2 + spec.sm.shared_memory_unit_bytes);
  return form;
}

std::vector<ProbeKernel> filling_row(const hardware::GpuSpec& spec) {
  constexpr std::size_t kKernels = 48;
  const program::Residency residency = program::residency_of(probe_needs(1), spec.sm);
  const capture::KernelForm wave = probe_form(
      std::uint64_t{residency.blocks_per_sm} * spec.sm_count, program::KernelClass::kCompute, spec);
  return std::vector<ProbeKernel>(kKernels, {wave, std::chrono::microseconds(100)});
}

ProbePlan::ProbePlan(std::string name, std::uint32_t client) {
  plan_.name = std::move(name);
  plan_.client = ClientId{client};
  plan_.program.own_kernels = program::OwnKernels::kCompete;
  plan_.program.stream_count = 1;
  plan_.program.threads.push_back({"probe", {}});
  plan_.record_operations = true;
  plan_.device_lags = true;
  step(program::StepKind::kIteration, 0);
}

std::uint32_t ProbePlan::launch(const ProbeKernel& kernel) {
  program::Op op;
  op.profile = capture::index_in(plan_.forms, kernel.form);
  op.duration = kernel.solo;
  return add(op, "kernel");
}

std::uint32_t ProbePlan::copy(capture::CopyPath path, Bytes bytes) {
  program::Op op;
  op.kind = program::WorkKind::kCopy;
  op.profile = capture::index_in(plan_.copies, {bytes, path});
  return add(op, "copy");
}

std::uint32_t ProbePlan::add(program::Op op, const std::string& name) {
  op.name = plan_.program.names.intern(name);
  plan_.program.ops.push_back(op);
  const auto index = static_cast<std::uint32_t>(plan_.program.ops.size() - 1);
  step(program::StepKind::kLaunch, index, 1);
  return index;
}

void ProbePlan::wait() { step(program::StepKind::kWaitStream, 0); }
void ProbePlan::wait_for(std::uint32_t op) { step(program::StepKind::kWaitOp, op); }
void ProbePlan::pause(Duration length) { step(program::StepKind::kPause, 0, 0, length); }

void ProbePlan::row(std::span<const ProbeKernel> kernels) {
  std::uint32_t last = 0;
  for (const ProbeKernel& kernel : kernels) last = launch(kernel);
  for (const ProbeKernel& kernel : kernels) launch(kernel);
  wait_for(last);
}

void ProbePlan::step(program::StepKind kind, std::uint32_t target, std::uint16_t count,
                     Duration think) {
  program::Step made;
  made.kind = kind;
  made.target = target;
  made.count = count;
  BUBBLESIM_CHECK(think <= program::kLongestShortSpan, "a pause longer than a step can think");
  made.think = program::short_span(think);
  plan_.program.threads.front().steps.push_back(made);
}

capture::JobPlan ProbePlan::take(std::uint64_t passes, Duration start_offset) {
  step(program::StepKind::kEnd, 0);
  plan_.loop = capture::LoopMode{passes};
  plan_.program.start_offset = start_offset;
  return std::move(plan_);
}

}  // namespace bubblesim::measure

// Small plans for tests of capture/replay, put together step by step.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "capture/replay/job_plan.hpp"

namespace bubblesim::capture::testing {

using std::chrono::microseconds;

[[nodiscard]] program::Step step(program::StepKind kind, std::uint32_t target = 0,
                                 Duration think = {});

/// A training plan of one iteration with no threads.
inline JobPlan empty_plan(std::uint32_t streams) {
  JobPlan plan;
  plan.name = "job";
  plan.program.stream_count = static_cast<std::uint16_t>(streams);
  plan.program.own_kernels = program::OwnKernels::kCompete;
  plan.program.names.intern("kernel");
  plan.forms.push_back({{{1, 1, 1}, {32, 1, 1}, 16, 0}});
  plan.loop = LoopMode{1};
  return plan;
}

/// Adds a kernel of one block that takes `solo` alone on the stream; returns its index.
inline std::uint32_t add_kernel(JobPlan& plan, std::uint32_t stream, Duration solo) {
  program::Op op;
  op.stream = static_cast<std::uint16_t>(stream);
  op.profile = 0;
  op.duration = solo;
  op.first_edge = static_cast<std::uint32_t>(plan.program.edges.size());
  plan.program.ops.push_back(op);
  return static_cast<std::uint32_t>(plan.program.ops.size() - 1);
}

/// The plan's last operation waits for operation `before`.
inline void add_edge(JobPlan& plan, std::uint32_t before) {
  plan.program.edges.push_back({before, {}});
  ++plan.program.ops.back().edge_count;
}

inline program::Step pause(Duration think) { return step(program::StepKind::kPause, 0, think); }

inline program::Step launch(Duration think, Duration cost, std::uint32_t op,
                            std::uint32_t count = 1) {
  program::Step made = step(program::StepKind::kLaunch, op, think);
  made.cost = program::short_span(cost);
  made.count = static_cast<std::uint16_t>(count);
  return made;
}

inline program::Step step(program::StepKind kind, std::uint32_t target, Duration think) {
  program::Step made;
  made.kind = kind;
  made.target = target;
  made.think = program::short_span(think);
  return made;
}

/// Gives the step of the thread a detail.
inline void detail(JobPlan& plan, std::uint32_t thread, std::uint32_t step,
                   const program::StepDetail& detail) {
  plan.program.threads[thread].steps[step].detail =
      static_cast<std::uint32_t>(plan.program.details.size());
  plan.program.details.push_back(detail);
}

/// A plan that uses every field of the format.
inline JobPlan full_plan() {
  JobPlan plan = empty_plan(2);
  plan.name = "a \"name\" with\ttab, \\ and \xc3\xa9";
  plan.client = ClientId{3};
  plan.role = policy::Role::kOnline;
  plan.program.rank = 7;
  plan.program.iterations = 2;
  plan.program.marked_thread = 1;
  plan.program.start_offset = Duration{123456789};
  plan.memory = Bytes{std::uint64_t{1} << 40};
  plan.priority = -2;
  plan.sms = 16;
  plan.report_completions = true;
  plan.program.own_kernels = program::OwnKernels::kAsRecorded;
  plan.device_lags = true;
  plan.program.names.intern("void gemm<float, 128>(float*)");
  plan.forms.push_back({{{7, 8, 9}, {4, 5, 6}, 255, 229376}, program::KernelClass::kMemory, true,
                        0.1, 1.0 / 3});
  add_kernel(plan, 0, Duration{1});
  add_kernel(plan, 1, Duration{987654321987});
  add_edge(plan, 0);
  plan.program.edges.back().lag = {17};
  plan.program.ops.back().profile = 1;
  plan.program.ops.back().name = NameId{1};
  add_kernel(plan, 1, microseconds(5));
  program::Op& copy = plan.program.ops.back();
  copy.kind = program::WorkKind::kCopy;
  copy.profile = 0;
  copy.duration = Duration{9};
  copy.launch_lag = {3};
  copy.gap = {2};
  plan.copies.push_back({Bytes{4096}, CopyPath::kDeviceToHost});
  add_edge(plan, 0);
  add_edge(plan, 1);
  plan.bubbles.push_back({1, {Duration{5000}, Bytes{77}, true}});
  plan.bubbles.push_back({2, {Duration{1}, Bytes{}, false}});
  plan.loop.reset();
  plan.serve = ServeMode{true, {Duration{0}, Duration{5}, Duration{5}}, {2, 8, Duration{99}, 0.3}};
  plan.program.threads.resize(2);
  plan.program.threads[0].name = "main";
  plan.program.threads[0].steps = {launch(Duration{4}, Duration{2}, 0, 2),
                                   step(program::StepKind::kWaitOp, 1)};
  plan.program.threads[1].name = "other";
  plan.program.threads[1].steps = {step(program::StepKind::kIteration, 1),
                                   launch(Duration{0}, Duration{1}, 2),
                                   step(program::StepKind::kWaitStream, 1),
                                   step(program::StepKind::kWaitDevice),
                                   pause(Duration{8}),
                                   step(program::StepKind::kEnd)};
  detail(plan, 0, 1, {{}, program::kNoIndex, 0, 3});
  detail(plan, 1, 1, {{}, 0, 1});
  detail(plan, 1, 2, {{6}});
  return plan;
}

}  // namespace bubblesim::capture::testing

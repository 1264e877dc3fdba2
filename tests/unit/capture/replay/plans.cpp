#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture::testing {

JobPlan empty_plan(std::uint32_t streams) {
  JobPlan plan;
  plan.name = "job";
  plan.stream_count = streams;
  plan.names = {"kernel"};
  plan.forms.push_back({{{1, 1, 1}, {32, 1, 1}, 16, 0}});
  plan.loop = LoopMode{1};
  return plan;
}

std::uint32_t add_kernel(JobPlan& plan, std::uint32_t stream, Duration solo) {
  PlanOp op;
  op.stream = stream;
  op.form = 0;
  op.solo = solo;
  op.first_edge = static_cast<std::uint32_t>(plan.edges.size());
  plan.ops.push_back(op);
  return static_cast<std::uint32_t>(plan.ops.size() - 1);
}

void add_edge(JobPlan& plan, std::uint32_t before) {
  plan.edges.push_back({before, {}});
  ++plan.ops.back().edge_count;
}

PlanStep pause(Duration think) { return step(PlanStepKind::kPause, 0, think); }

PlanStep launch(Duration think, Duration cost, std::uint32_t op, std::uint32_t count) {
  PlanStep made = step(PlanStepKind::kLaunch, op, think);
  made.cost = cost;
  made.count = count;
  return made;
}

PlanStep step(PlanStepKind kind, std::uint32_t target, Duration think) {
  PlanStep made;
  made.kind = kind;
  made.target = target;
  made.think = think;
  return made;
}

JobPlan full_plan() {
  JobPlan plan = empty_plan(2);
  plan.name = "a \"name\" with\ttab, \\ and \xc3\xa9";
  plan.client = ClientId{3};
  plan.role = policy::Role::kOnline;
  plan.rank = 7;
  plan.iterations = 2;
  plan.marked_thread = 1;
  plan.start_offset = Duration{123456789};
  plan.memory = Bytes{std::uint64_t{1} << 40};
  plan.priority = -2;
  plan.sms = 16;
  plan.report_completions = plan.report_durations = true;
  plan.seed = ~std::uint64_t{0};
  plan.as_recorded = true;
  plan.device_lags = true;
  plan.names.emplace_back("void gemm<float, 128>(float*)");
  plan.forms.push_back({{{7, 8, 9}, {4, 5, 6}, 255, 229376}, program::KernelClass::kMemory, true,
                        0.1, 1.0 / 3});
  add_kernel(plan, 0, Duration{1});
  add_kernel(plan, 1, Duration{987654321987});
  add_edge(plan, 0);
  plan.edges.back().lag = Duration{17};
  plan.ops.back().form = 1;
  plan.ops.back().name = 1;
  add_kernel(plan, 1, microseconds(5));
  plan.ops.back() = {program::WorkKind::kCopy, 1, kNone, 0, Duration{9}, Bytes{4096},
                     CopyPath::kDeviceToHost, 1, 0, Duration{3}, Duration{2}};
  add_edge(plan, 0);
  add_edge(plan, 1);
  plan.bubbles.push_back({1, {Duration{5000}, Bytes{77}, true}});
  plan.bubbles.push_back({2, {Duration{1}, Bytes{}, false}});
  plan.loop.reset();
  plan.serve = ServeMode{true, {Duration{0}, Duration{5}, Duration{5}}, 2, 8, Duration{99}, 0.3};
  plan.threads.resize(2);
  plan.threads[0].name = "main";
  plan.threads[0].steps = {launch(Duration{4}, Duration{2}, 0, 2), step(PlanStepKind::kWaitOp, 1)};
  plan.threads[1].name = "other";
  plan.threads[1].steps = {step(PlanStepKind::kIteration, 1), launch(Duration{0}, Duration{1}, 2),
                           step(PlanStepKind::kWaitStream, 1), step(PlanStepKind::kWaitDevice),
                           pause(Duration{8}), step(PlanStepKind::kEnd)};
  plan.threads[1].steps[1].after_thread = 0;
  plan.threads[1].steps[1].after_step = 1;
  plan.threads[1].steps[2].return_lag = Duration{6};
  return plan;
}

}  // namespace bubblesim::capture::testing

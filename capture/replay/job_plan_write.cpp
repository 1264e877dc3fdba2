#include "capture/replay/job_plan_file.hpp"
#include "capture/replay/job_plan_keys.hpp"
#include "capture/replay/json_columns.hpp"
#include "sim/base/output_file.hpp"

namespace bubblesim::capture {
namespace {

/// An index of which there may be none: -1.
std::int64_t index_or_none(std::uint32_t index) {
  return index == program::kNoIndex ? std::int64_t{-1} : std::int64_t{index};
}

std::string_view role_name(policy::Role role) {
  for (const auto& choice : kRoleNames) {
    if (choice.value == role) return choice.name;
  }
  return kRoleNames.front().name;
}

void write_head(JsonWriter& out, const JobPlan& plan) {
  out.text("format", kJobPlanFormat);
  out.text("name", plan.name);
  out.whole("client", plan.client.value);
  out.text("role", role_name(plan.role));
  out.whole("rank", plan.program.rank);
  out.whole("streams", plan.program.stream_count);
  out.whole("iterations", plan.program.iterations);
  out.whole("marked_thread", plan.program.marked_thread);
  out.integer("start_offset_ns", to_ns(plan.program.start_offset));
  out.whole("memory_bytes", plan.memory.value);
  out.integer("priority", plan.priority);
  out.whole("sms", plan.sms);
  out.flag("report_completions", plan.report_completions);
  out.flag("record_operations", plan.record_operations);
  out.whole("seed", plan.seed);
  out.flag("device_lags", plan.device_lags);
  out.flag("as_recorded", plan.program.own_kernels == program::OwnKernels::kAsRecorded);
}

void write_mode(JsonWriter& out, const JobPlan& plan) {
  if (plan.loop) {
    out.open("loop");
    out.whole("iterations", plan.loop->iterations);
    out.close();
  }
  if (plan.serve) {
    out.open("serve");
    out.flag("online", plan.serve->online);
    out.whole("requests_per_pass", plan.serve->batching.requests_per_pass);
    out.whole("max_batch", plan.serve->batching.max_batch);
    out.integer("max_wait_ns", to_ns(plan.serve->batching.max_wait));
    out.number("batch_cost", plan.serve->batching.batch_cost);
    out.full_column("arrivals_ns", plan.serve->arrivals, [](Duration at) { return to_ns(at); });
    out.close();
  }
}

void write_forms(JsonWriter& out, const std::vector<KernelForm>& forms) {
  using Form = KernelForm;
  out.open("forms");
  out.full_column("grid_x", forms, [](const Form& f) { return f.shape.grid[0]; });
  out.column("grid_y", forms, [](const Form& f) { return f.shape.grid[1]; }, 1);
  out.column("grid_z", forms, [](const Form& f) { return f.shape.grid[2]; }, 1);
  out.column("block_x", forms, [](const Form& f) { return f.shape.block[0]; }, 1);
  out.column("block_y", forms, [](const Form& f) { return f.shape.block[1]; }, 1);
  out.column("block_z", forms, [](const Form& f) { return f.shape.block[2]; }, 1);
  out.column("registers", forms,
             [](const Form& f) -> std::uint32_t { return f.shape.registers_per_thread; }, 0);
  out.column("shared_bytes", forms, [](const Form& f) { return f.shape.shared_memory_bytes; }, 0);
  out.column("bound", forms, [](const Form& f) { return static_cast<std::uint32_t>(f.bound); }, 0);
  out.column("tensor", forms, [](const Form& f) { return f.tensor ? 1 : 0; }, 0);
  out.number_column("dram_share", forms, [](const Form& f) { return f.dram_share; });
  out.number_column("issue_share", forms, [](const Form& f) { return f.issue_share; });
  out.close();
}

void write_ops(JsonWriter& out, const JobPlan& plan) {
  using program::Op;
  const std::vector<Op>& ops = plan.program.ops;
  const auto form = [](const Op& op) {
    return is_kernel(op.kind) ? index_or_none(op.profile) : std::int64_t{-1};
  };
  const auto copy = [&plan](const Op& op) {
    return is_kernel(op.kind) ? CopyForm{} : copy_of(plan, op);
  };
  out.open("ops");
  out.full_column("solo_ns", ops, [](const Op& op) { return to_ns(op.duration); });
  out.column("kind", ops, [](const Op& op) { return static_cast<std::uint32_t>(op.kind); }, 0);
  out.column("stream", ops, [](const Op& op) -> std::uint32_t { return op.stream; }, 0);
  out.column("form", ops, form, -1);
  out.column("name", ops, [](const Op& op) { return op.name.value; }, 0);
  out.column("bytes", ops, [&](const Op& op) { return copy(op).bytes.value; }, 0);
  out.column("path", ops, [&](const Op& op) { return static_cast<std::uint32_t>(copy(op).path); },
             0);
  out.column("edges", ops, [](const Op& op) -> std::uint32_t { return op.edge_count; }, 0);
  out.column("launch_lag_ns", ops, [](const Op& op) { return op.launch_lag.nanoseconds; }, 0);
  out.column("gap_ns", ops, [](const Op& op) { return op.gap.nanoseconds; }, 0);
  out.close();
}

void write_edges(JsonWriter& out, const JobPlan& plan) {
  std::vector<program::OpEdge> edges;
  edges.reserve(plan.program.edges.size());
  for (const program::Op& op : plan.program.ops) {
    for (std::uint32_t i = 0; i < op.edge_count; ++i) {
      edges.push_back(plan.program.edges[op.first_edge + i]);
    }
  }
  out.open("edges");
  out.full_column("before", edges, [](const program::OpEdge& edge) { return edge.before; });
  out.column("lag_ns", edges, [](const program::OpEdge& edge) { return edge.lag.nanoseconds; }, 0);
  out.close();
}

void write_bubbles(JsonWriter& out, const std::vector<PlanBubble>& bubbles) {
  using Bubble = PlanBubble;
  out.open("bubbles");
  out.full_column("after_op", bubbles, [](const Bubble& b) { return b.after_op; });
  out.column("expected_ns", bubbles, [](const Bubble& b) { return to_ns(b.info.expected); }, 0);
  out.column("free_bytes", bubbles, [](const Bubble& b) { return b.info.free_memory.value; }, 0);
  out.column("pipeline", bubbles, [](const Bubble& b) { return b.info.pipeline ? 1 : 0; }, 0);
  out.close();
}

void write_thread(JsonWriter& out, const program::ThreadProgram& thread,
                  const std::vector<program::StepDetail>& details) {
  using program::Step;
  const std::vector<Step>& steps = thread.steps;
  const auto detail = [&details](const Step& s) {
    return s.detail == program::kNoIndex ? program::StepDetail{} : details[s.detail];
  };
  out.open("");
  out.text("name", thread.name);
  out.full_column("kind", steps, [](const Step& s) { return static_cast<std::uint32_t>(s.kind); });
  out.column("think_ns", steps, [](const Step& s) { return s.think.nanoseconds; }, 0);
  out.column("cost_ns", steps, [](const Step& s) { return s.cost.nanoseconds; }, 0);
  out.column("target", steps, [](const Step& s) { return s.target; }, 0);
  out.column("count", steps, [](const Step& s) -> std::uint32_t { return s.count; }, 0);
  out.column("return_lag_ns", steps,
             [&](const Step& s) { return detail(s).return_lag.nanoseconds; }, 0);
  out.column("after_thread", steps,
             [&](const Step& s) { return index_or_none(detail(s).after_thread); }, -1);
  out.column("after_step", steps, [&](const Step& s) { return detail(s).after_step; }, 0);
  out.column("passes_back", steps, [&](const Step& s) { return detail(s).passes_back; }, 0);
  out.close();
}

std::vector<std::string> names_of(const program::Program& program) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < program.names.size(); ++i) {
    names.push_back(program.names[NameId{i}]);
  }
  return names;
}

}  // namespace

std::string job_plan_text(const JobPlan& plan) {
  JsonWriter out;
  write_head(out, plan);
  write_mode(out, plan);
  out.texts("names", names_of(plan.program));
  write_forms(out, plan.forms);
  write_ops(out, plan);
  write_edges(out, plan);
  write_bubbles(out, plan.bubbles);
  out.open_list("threads");
  for (const program::ThreadProgram& thread : plan.program.threads) {
    write_thread(out, thread, plan.program.details);
  }
  out.close_list();
  return out.take();
}

Result<void> write_job_plan(const std::string& path, const JobPlan& plan) {
  return write_whole_file(path, job_plan_text(plan));
}

}  // namespace bubblesim::capture

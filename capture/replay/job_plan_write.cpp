#include "capture/replay/job_plan_file.hpp"
#include "capture/replay/job_plan_keys.hpp"
#include "capture/replay/json_columns.hpp"
#include "sim/base/json.hpp"
#include "sim/base/output_file.hpp"

namespace bubblesim::capture {
namespace {

/// An index of which there may be none: -1.
std::int64_t index_or_none(std::uint32_t index) {
  return index == program::kNoIndex ? std::int64_t{-1} : std::int64_t{index};
}

Json head_of(const JobPlan& plan) {
  return {{"format", kJobPlanFormat},
          {"name", plan.name},
          {"client", plan.client.value},
          {"role", choice_name(plan.role, kRoleNames)},
          {"rank", plan.program.rank},
          {"streams", plan.program.stream_count},
          {"iterations", plan.program.iterations},
          {"marked_thread", plan.program.marked_thread},
          {"start_offset_ns", to_ns(plan.program.start_offset)},
          {"memory_bytes", plan.memory.value},
          {"priority", plan.priority},
          {"sms", plan.sms},
          {"report_completions", plan.report_completions},
          {"record_operations", plan.record_operations},
          {"seed", plan.seed},
          {"device_lags", plan.device_lags},
          {"as_recorded", plan.program.own_kernels == program::OwnKernels::kAsRecorded}};
}

Json serve_of(const ServeMode& serve) {
  Json out{{"online", serve.online},
           {"requests_per_pass", serve.batching.requests_per_pass},
           {"max_batch", serve.batching.max_batch},
           {"max_wait_ns", to_ns(serve.batching.max_wait)},
           {"batch_cost", serve.batching.batch_cost}};
  put_column(out, "arrivals_ns", serve.arrivals, [](Duration at) { return to_ns(at); });
  return out;
}

Json forms_of(const std::vector<KernelForm>& forms) {
  using Form = KernelForm;
  Json out = Json::object();
  put_column(out, "grid_x", forms, [](const Form& f) { return f.shape.grid[0]; });
  put_column(out, "grid_y", forms, [](const Form& f) { return f.shape.grid[1]; }, 1);
  put_column(out, "grid_z", forms, [](const Form& f) { return f.shape.grid[2]; }, 1);
  put_column(out, "block_x", forms, [](const Form& f) { return f.shape.block[0]; }, 1);
  put_column(out, "block_y", forms, [](const Form& f) { return f.shape.block[1]; }, 1);
  put_column(out, "block_z", forms, [](const Form& f) { return f.shape.block[2]; }, 1);
  put_column(out, "registers", forms,
             [](const Form& f) -> std::uint32_t { return f.shape.registers_per_thread; }, 0);
  put_column(out, "shared_bytes", forms,
             [](const Form& f) { return f.shape.shared_memory_bytes; }, 0);
  put_column(out, "bound", forms,
             [](const Form& f) { return static_cast<std::uint32_t>(f.bound); }, 0);
  put_column(out, "tensor", forms, [](const Form& f) { return f.tensor ? 1 : 0; }, 0);
  put_column(out, "dram_share", forms, [](const Form& f) { return f.dram_share; });
  put_column(out, "issue_share", forms, [](const Form& f) { return f.issue_share; });
  return out;
}

Json ops_of(const JobPlan& plan) {
  using program::Op;
  const std::vector<Op>& ops = plan.program.ops;
  const auto form = [](const Op& op) {
    return is_kernel(op.kind) ? index_or_none(op.profile) : std::int64_t{-1};
  };
  const auto copy = [&plan](const Op& op) {
    return is_kernel(op.kind) ? CopyForm{} : copy_of(plan, op);
  };
  Json out = Json::object();
  put_column(out, "solo_ns", ops, [](const Op& op) { return to_ns(op.duration); });
  put_column(out, "kind", ops, [](const Op& op) { return static_cast<std::uint32_t>(op.kind); }, 0);
  put_column(out, "stream", ops, [](const Op& op) -> std::uint32_t { return op.stream; }, 0);
  put_column(out, "form", ops, form, -1);
  put_column(out, "name", ops, [](const Op& op) { return op.name.value; }, 0);
  put_column(out, "bytes", ops, [&](const Op& op) { return copy(op).bytes.value; }, 0);
  put_column(out, "path", ops,
             [&](const Op& op) { return static_cast<std::uint32_t>(copy(op).path); }, 0);
  put_column(out, "edges", ops, [](const Op& op) -> std::uint32_t { return op.edge_count; }, 0);
  put_column(out, "launch_lag_ns", ops, [](const Op& op) { return op.launch_lag.nanoseconds; }, 0);
  put_column(out, "gap_ns", ops, [](const Op& op) { return op.gap.nanoseconds; }, 0);
  return out;
}

Json edges_of(const JobPlan& plan) {
  std::vector<program::OpEdge> edges;
  edges.reserve(plan.program.edges.size());
  for (const program::Op& op : plan.program.ops) {
    for (std::uint32_t i = 0; i < op.edge_count; ++i) {
      edges.push_back(plan.program.edges[op.first_edge + i]);
    }
  }
  Json out = Json::object();
  put_column(out, "before", edges, [](const program::OpEdge& edge) { return edge.before; });
  put_column(out, "lag_ns", edges,
             [](const program::OpEdge& edge) { return edge.lag.nanoseconds; }, 0);
  put_column(out, "passes_back", edges,
             [](const program::OpEdge& edge) { return edge.passes_back; }, 0);
  return out;
}

Json bubbles_of(const std::vector<policy::MeasuredBubble>& bubbles) {
  using Bubble = policy::MeasuredBubble;
  Json out = Json::object();
  put_column(out, "after_op", bubbles, [](const Bubble& b) { return b.after_op; });
  put_column(out, "expected_ns", bubbles,
             [](const Bubble& b) { return to_ns(b.info.expected); }, 0);
  put_column(out, "free_bytes", bubbles,
             [](const Bubble& b) { return b.info.free_memory.value; }, 0);
  put_column(out, "pipeline", bubbles, [](const Bubble& b) { return b.info.pipeline ? 1 : 0; }, 0);
  return out;
}

Json thread_of(const program::ThreadProgram& thread,
               const std::vector<program::StepDetail>& details) {
  using program::Step;
  const std::vector<Step>& steps = thread.steps;
  const auto detail = [&details](const Step& s) {
    return s.detail == program::kNoIndex ? program::StepDetail{} : details[s.detail];
  };
  Json out{{"name", thread.name}};
  put_column(out, "kind", steps, [](const Step& s) { return static_cast<std::uint32_t>(s.kind); });
  put_column(out, "think_ns", steps, [](const Step& s) { return s.think.nanoseconds; }, 0);
  put_column(out, "cost_ns", steps, [](const Step& s) { return s.cost.nanoseconds; }, 0);
  put_column(out, "target", steps, [](const Step& s) { return s.target; }, 0);
  put_column(out, "count", steps, [](const Step& s) -> std::uint32_t { return s.count; }, 0);
  put_column(out, "return_lag_ns", steps,
             [&](const Step& s) { return detail(s).return_lag.nanoseconds; }, 0);
  put_column(out, "after_thread", steps,
             [&](const Step& s) { return index_or_none(detail(s).after_thread); }, -1);
  put_column(out, "after_step", steps, [&](const Step& s) { return detail(s).after_step; }, 0);
  put_column(out, "passes_back", steps, [&](const Step& s) { return detail(s).passes_back; }, 0);
  return out;
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
  Json out = head_of(plan);
  if (plan.loop) out["loop"] = {{"iterations", plan.loop->iterations}};
  if (plan.serve) out["serve"] = serve_of(*plan.serve);
  out["names"] = names_of(plan.program);
  out["forms"] = forms_of(plan.forms);
  out["ops"] = ops_of(plan);
  out["edges"] = edges_of(plan);
  out["bubbles"] = bubbles_of(plan.bubbles);
  Json& threads = out["threads"] = Json::array();
  for (const program::ThreadProgram& thread : plan.program.threads) {
    threads.push_back(thread_of(thread, plan.program.details));
  }
  return columns_text(out);
}

Result<void> write_job_plan(const std::string& path, const JobPlan& plan) {
  return write_whole_file(path, job_plan_text(plan));
}

}  // namespace bubblesim::capture

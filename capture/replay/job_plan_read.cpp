#include <map>
#include <utility>

#include "capture/gate/gate_client.hpp"
#include "capture/replay/job_plan_check.hpp"
#include "capture/replay/job_plan_file.hpp"
#include "capture/replay/job_plan_keys.hpp"
#include "capture/replay/json_columns.hpp"

namespace bubblesim::capture {
namespace {

constexpr Range<std::uint32_t> kAnyCount{0, program::kNoIndex - 1};
/// Of a program::ShortSpan.
constexpr Range<std::uint32_t> kShortSpan{};
constexpr Range<std::uint32_t> kExtent{1, program::kNoIndex - 1};
/// Of a plan. A stream is a hardware queue and a thread one of the machine's; a plan with more is
/// a mistake.
constexpr std::uint16_t kMostStreams = 1024;
constexpr std::size_t kMostThreads = kMostGateThreads;

std::uint32_t index_of(std::int64_t value) {
  return value < 0 ? program::kNoIndex : static_cast<std::uint32_t>(value);
}

Range<std::int64_t> index_or_none(std::size_t count) {
  return {-1, static_cast<std::int64_t>(count) - 1};
}

void read_head(ObjectReader& reader, JobPlan& plan) {
  reader.expect("format", kJobPlanFormat);
  plan.name = reader.text("name");
  plan.client.value = reader.integer<std::uint32_t>("client", {0, kMostGateClients - 1});
  plan.role = reader.choice("role", kRoleNames);
  plan.program.rank = reader.integer<std::uint32_t>("rank");
  plan.program.stream_count = reader.integer<std::uint16_t>("streams", {0, kMostStreams});
  plan.program.iterations = reader.integer<std::uint32_t>("iterations", kExtent);
  plan.program.marked_thread = reader.integer<std::uint32_t>("marked_thread");
  plan.program.start_offset = Duration{reader.integer<std::int64_t>("start_offset_ns", kSpan)};
  plan.memory.value = reader.integer<std::uint64_t>("memory_bytes");
  plan.priority = reader.integer<std::int32_t>("priority");
  plan.sms = reader.integer<std::uint32_t>("sms");
  plan.report_completions = reader.flag("report_completions");
  plan.record_operations = reader.flag("record_operations");
  plan.seed = reader.integer<std::uint64_t>("seed");
  plan.device_lags = reader.flag("device_lags");
  plan.program.own_kernels = reader.flag("as_recorded") ? program::OwnKernels::kAsRecorded
                                                  : program::OwnKernels::kCompete;
}

void read_serve(ObjectReader reader, JobPlan& plan) {
  ServeMode& serve = plan.serve.emplace();
  serve.online = reader.flag("online");
  serve.batching.requests_per_pass = reader.integer<std::uint64_t>("requests_per_pass", {1});
  serve.batching.max_batch = reader.integer<std::uint32_t>("max_batch", kExtent);
  serve.batching.max_wait = Duration{reader.integer<std::int64_t>("max_wait_ns", kSpan)};
  serve.batching.batch_cost = reader.number("batch_cost", {0, 1e6});
  for (const std::int64_t at : reader.integers<std::int64_t>("arrivals_ns", kSpan)) {
    if (!serve.arrivals.empty() && Duration{at} < serve.arrivals.back()) {
      reader.fault("arrivals_ns", "found " + std::to_string(at) + " after " +
                                  std::to_string(to_ns(serve.arrivals.back())) +
                                  "; arrivals ascend");
      break;
    }
    serve.arrivals.emplace_back(at);
  }
}

void read_mode(ObjectReader& reader, JobPlan& plan) {
  reader.one_of({"loop", "serve"});
  if (reader.has("loop")) {
    plan.loop.emplace().iterations = reader.child("loop").integer<std::uint64_t>("iterations");
  }
  if (reader.has("serve")) read_serve(reader.child("serve"), plan);
}

void read_forms(ObjectReader reader, JobPlan& plan) {
  std::vector<std::uint32_t> grid_x;
  ColumnReader columns(reader, "grid_x", kExtent, grid_x);
  const auto grid_y = columns.column("grid_y", kExtent, 1U);
  const auto grid_z = columns.column("grid_z", kExtent, 1U);
  const auto block_x = columns.column("block_x", kExtent, 1U);
  const auto block_y = columns.column("block_y", kExtent, 1U);
  const auto block_z = columns.column("block_z", kExtent, 1U);
  const auto registers = columns.column<std::uint16_t>("registers", {0, 1024}, 0);
  const auto shared = columns.column("shared_bytes", kAnyCount, 0U);
  const auto bound = columns.column<std::uint32_t>("bound", {0, kLastBound}, 0);
  const auto tensor = columns.column<std::uint32_t>("tensor", {0, 1}, 0);
  const auto dram = columns.numbers("dram_share", {0, 1}, 0);
  const auto issue = columns.numbers("issue_share", {0, 1}, 0);
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    plan.forms.push_back({{{grid_x[i], grid_y[i], grid_z[i]},
                           {block_x[i], block_y[i], block_z[i]},
                           registers[i],
                           shared[i]},
                          static_cast<program::KernelClass>(bound[i]),
                          tensor[i] != 0,
                          dram[i],
                          issue[i]});
  }
}

void read_ops(ObjectReader reader, const std::vector<NameId>& names, JobPlan& plan) {
  program::Program& program = plan.program;
  std::vector<std::int64_t> solo;
  ColumnReader columns(reader, "solo_ns", kSpan, solo);
  const auto kind = columns.column<std::uint32_t>("kind", {0, kLastWorkKind}, 0);
  const auto stream =
      columns.column<std::uint16_t>("stream", index_range<std::uint16_t>(program.stream_count), 0);
  const auto form = columns.column<std::int64_t>("form", index_or_none(plan.forms.size()), -1);
  const auto name = columns.column("name", index_range<std::uint32_t>(names.size()), 0U);
  const auto bytes = columns.column<std::uint64_t>("bytes", {}, 0);
  const auto path = columns.column<std::uint32_t>("path", {0, kLastCopyPath}, 0);
  const auto edges = columns.column<std::uint8_t>("edges", {}, 0);
  const auto launch_lag = columns.column("launch_lag_ns", kShortSpan, 0U);
  const auto gap = columns.column("gap_ns", kShortSpan, 0U);
  if (columns.rows() > 0 && (program.stream_count == 0 || names.empty())) {
    reader.fault("", "has operations; the plan has no streams or no names");
    return;
  }
  program.ops.reserve(columns.rows());
  std::map<CopyForm, std::uint32_t> copies;
  const auto copy_index = [&](const CopyForm& copy) {
    const auto next = static_cast<std::uint32_t>(plan.copies.size());
    const auto [found, is_new] = copies.emplace(copy, next);
    if (is_new) plan.copies.push_back(copy);
    return found->second;
  };
  std::uint32_t first_edge = 0;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    program::Op& op = program.ops.emplace_back();
    op.kind = static_cast<program::WorkKind>(kind[i]);
    op.stream = stream[i];
    op.name = names[name[i]];
    op.duration = Duration{solo[i]};
    op.launch_lag = {launch_lag[i]};
    op.gap = {gap[i]};
    op.first_edge = first_edge;
    op.edge_count = edges[i];
    op.profile = is_kernel(op.kind)
                     ? index_of(form[i])
                     : copy_index({{bytes[i]}, static_cast<CopyPath>(path[i])});
    first_edge += edges[i];
  }
}

void read_edges(ObjectReader reader, JobPlan& plan) {
  std::vector<std::uint32_t> before;
  ColumnReader columns(reader, "before", index_range<std::uint32_t>(plan.program.ops.size()),
                       before);
  const auto lag = columns.column("lag_ns", kShortSpan, 0U);
  const auto passes_back = columns.column("passes_back", kAnyCount, 0U);
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    plan.program.edges.push_back({before[i], {lag[i]}, passes_back[i]});
  }
  std::uint64_t wanted = 0;
  for (const program::Op& op : plan.program.ops) wanted += op.edge_count;
  if (wanted != plan.program.edges.size()) {
    reader.fault("before", "found " + std::to_string(plan.program.edges.size()) +
                           " edges; the operations have " + std::to_string(wanted));
  }
}

void read_bubbles(ObjectReader reader, JobPlan& plan) {
  std::vector<std::uint32_t> after;
  ColumnReader columns(reader, "after_op", index_range<std::uint32_t>(plan.program.ops.size()),
                       after);
  const auto expected = columns.spans("expected_ns");
  const auto free = columns.column<std::uint64_t>("free_bytes", {}, 0);
  const auto pipeline = columns.column<std::uint32_t>("pipeline", {0, 1}, 0);
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    if (i > 0 && after[i] <= after[i - 1]) {
      reader.fault("after_op", "found " + std::to_string(after[i]) + " after " +
                               std::to_string(after[i - 1]) + "; bubbles are in order");
    }
    plan.bubbles.push_back({after[i], {expected[i], {free[i]}, pipeline[i] != 0}});
  }
}

program::ThreadProgram read_thread(ObjectReader& reader,
                                   std::vector<program::StepDetail>& details) {
  program::ThreadProgram thread;
  thread.name = reader.text("name");
  std::vector<std::uint32_t> kind;
  ColumnReader columns(reader, "kind", {0, kLastStepKind}, kind);
  const auto think = columns.column("think_ns", kShortSpan, 0U);
  const auto cost = columns.column("cost_ns", kShortSpan, 0U);
  const auto target = columns.column("target", kAnyCount, 0U);
  const auto count = columns.column<std::uint16_t>("count", {}, 0);
  const auto return_lag = columns.column("return_lag_ns", kShortSpan, 0U);
  const auto after_thread =
      columns.column<std::int64_t>("after_thread", {-1, program::kNoIndex - 1}, -1);
  const auto after_step = columns.column("after_step", kAnyCount, 0U);
  const auto passes_back = columns.column("passes_back", kAnyCount, 0U);
  thread.steps.reserve(columns.rows());
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    program::Step step{{think[i]}, {cost[i]}, target[i], program::kNoIndex, count[i],
                       static_cast<program::StepKind>(kind[i])};
    if (return_lag[i] != 0 || after_thread[i] >= 0 || passes_back[i] != 0) {
      step.detail = static_cast<std::uint32_t>(details.size());
      details.push_back(
          {{return_lag[i]}, index_of(after_thread[i]), after_step[i], passes_back[i]});
    }
    thread.steps.push_back(step);
  }
  return thread;
}

void read_threads(ObjectReader& reader, JobPlan& plan) {
  std::vector<ObjectReader> threads = reader.children("threads");
  if (threads.size() > kMostThreads) {
    reader.fault("threads", "found " + std::to_string(threads.size()) +
                                " threads; expected at most " + std::to_string(kMostThreads));
    return;
  }
  for (ObjectReader& thread : threads) {
    plan.program.threads.push_back(read_thread(thread, plan.program.details));
  }
  if (plan.program.marked_thread >= plan.program.threads.size()) {
    reader.fault("marked_thread", "found " + std::to_string(plan.program.marked_thread) +
                                  "; there are " + std::to_string(plan.program.threads.size()) +
                                  " threads");
  }
}

// A looping thread without steps is harmless, a plan without any has nothing to do and no end.
void check_work(ObjectReader& reader, const JobPlan& plan) {
  for (const program::ThreadProgram& thread : plan.program.threads) {
    if (!thread.steps.empty()) return;
  }
  reader.fault("threads", "no thread has a step");
}

CheckedResult<JobPlan> read_plan(const JsonDocument& document) {
  Errors errors;
  ObjectReader root = document.root(errors);
  JobPlan plan;
  read_head(root, plan);
  read_mode(root, plan);
  std::vector<NameId> names;
  for (const std::string& name : root.texts("names")) {
    names.push_back(plan.program.names.intern(name));
  }
  read_forms(root.child("forms"), plan);
  read_ops(root.child("ops"), names, plan);
  read_edges(root.child("edges"), plan);
  read_bubbles(root.child("bubbles"), plan);
  read_threads(root, plan);
  root.finish();
  if (errors.empty()) {
    check_work(root, plan);
    check_plan_steps(root, plan);
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return plan;
}

}  // namespace

CheckedResult<JobPlan> parse_job_plan(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto document, JsonDocument::parse(text, std::move(label)));
  return read_plan(document);
}

CheckedResult<JobPlan> read_job_plan(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto document, JsonDocument::load_file(path));
  return read_plan(document);
}

}  // namespace bubblesim::capture

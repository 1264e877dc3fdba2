#include "sim/measure/measured_result.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <tuple>

#include "sim/observe/summary.hpp"
#include "sim/run/simulation_results.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::measure {
namespace {

// Requests of a service that is always busy: each pass serves as many as its record says.
void add_offline(const capture::JobRecord& record, const MeasuredWindow& window,
                 observe::InstanceResult& instance) {
  for (std::size_t i = 0; i < record.passes.size(); ++i) {
    if (record.passes[i] < window.warmup || record.passes[i] > window.end) continue;
    ++instance.passes;
    if (i < record.pass_requests.size()) instance.requests_completed += record.pass_requests[i];
  }
}

// A request that the run's end found waiting or running.
void add_unfinished(Duration arrival, const MeasuredWindow& window, observe::FillerResult& result,
                    observe::Backlog& backlog) {
  if (arrival > window.end) return;
  ++result.requests_unfinished;
  backlog.oldest = std::max(backlog.oldest, window.end - arrival);
  if (arrival < window.warmup) {
    ++result.requests_before;
  } else {
    result.latency.add_unfinished(window.end - arrival);
  }
}

void add_online(const capture::JobRecord& record, const MeasuredWindow& window,
                observe::InstanceResult& instance, observe::FillerResult& result,
                observe::Backlog& backlog) {
  for (const Duration end : record.passes) {
    if (end >= window.warmup && end <= window.end) ++instance.passes;
  }
  for (const capture::RequestRecord& request : record.requests) {
    if (request.end < window.warmup) continue;
    if (request.end > window.end) {
      add_unfinished(request.arrival, window, result, backlog);
      continue;
    }
    ++instance.requests_completed;
    if (request.arrival < window.warmup) {
      ++result.requests_before;
    } else {
      result.latency.add(request.end - request.arrival);
    }
  }
  for (const Duration arrival : record.unfinished) {
    add_unfinished(arrival, window, result, backlog);
  }
}

std::uint64_t arrived_in(const std::vector<Duration>& arrivals, const MeasuredWindow& window) {
  return static_cast<std::uint64_t>(
      std::count_if(arrivals.begin(), arrivals.end(), [&](Duration arrival) {
        return arrival >= window.warmup && arrival <= window.end;
      }));
}

}  // namespace

Duration end_of_run(const run::RunConfig& config, const capture::JobRecord* training,
                    Duration limit) {
  if (!config.iterations || training == nullptr) return limit;
  const auto& ends = training->iterations;
  return ends.size() < *config.iterations ? limit : ends[*config.iterations - 1];
}

observe::RankIterations iterations_of(const capture::JobRecord& training,
                                      const MeasuredWindow& window) {
  observe::RankIterations rank;
  rank.rank = training.rank;
  Duration before{};
  for (const Duration end : training.iterations) {
    if (end > window.end) break;
    rank.times.push_back(end - before);
    before = end;
  }
  rank.first_counted = observe::first_after(rank.times, window.warmup);
  return rank;
}

observe::FillerResult filler_result(const run::FillerConfig& config,
                                    const std::optional<capture::JobRecord>& record,
                                    const policy::Admission& admission,
                                    const std::vector<Duration>& arrivals,
                                    const MeasuredWindow& window) {
  observe::FillerResult result;
  result.name = config.name;
  result.mode = config.mode;
  observe::InstanceResult instance;
  instance.admitted = admission.admitted;
  instance.reason = admission.reason;
  if (admission.admitted) instance.memory = config.memory.value_or(Bytes{});
  const bool online = config.mode == observe::FillerMode::kOnline;
  observe::Backlog backlog;
  backlog.batch =
      std::max<std::uint64_t>(config.batching.requests_per_pass, config.batching.max_batch);
  if (record && online) add_online(*record, window, instance, result, backlog);
  if (record && !online) add_offline(*record, window, instance);
  if (online) {
    result.requests_arrived = arrived_in(arrivals, window);
    if (!admission.admitted) result.requests_refused = result.requests_arrived;
  }
  result.instances.push_back(instance);
  run::summarise_filler(config, backlog, window.end - window.warmup, result);
  return result;
}

observe::HostActivity host_activity(const capture::RigResult& result,
                                    capture::Substrate substrate) {
  observe::HostActivity host;
  host.substrate = capture::substrate_name(substrate);
  if (result.host) {
    const capture::SpanSummary& latency = result.host->decision_latency;
    host.decisions = latency.count;
    host.decision_p50 = latency.p50;
    host.decision_p95 = latency.p95;
    host.decision_p99 = latency.p99;
    host.decision_max = latency.max;
    host.policy_call_mean = result.host->policy_call.mean;
  }
  for (const capture::JobOutcome& job : result.jobs) {
    if (job.record) host.gate_time += job.record->gate_time;
  }
  return host;
}

namespace {

std::string_view kind_text(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return "kernel";
    case program::WorkKind::kCollective: return "collective";
    case program::WorkKind::kCopy: return "copy";
    case program::WorkKind::kMemset: return "memset";
  }
  return "";
}

void append_job(std::string& text, const program::Program& program,
                const capture::JobRecord& record) {
  std::vector<capture::OperationRecord> rows = record.operations;
  std::ranges::sort(rows, {}, [](const capture::OperationRecord& row) {
    return std::tuple(row.start, row.pass, row.op);
  });
  for (const capture::OperationRecord& row : rows) {
    const program::Op& op = program.ops[row.op];
    append_csv_cell(text, record.name);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},", row.pass, row.op,
                   kind_text(op.kind), op.stream);
    append_csv_cell(text, program.names[op.name]);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},{}\n", to_ns(row.called),
                   to_ns(row.start), to_ns(row.end), to_ns(row.returned), to_ns(row.noticed));
  }
}

}  // namespace

std::string operations_csv(const std::vector<capture::RigJob>& jobs,
                           const std::vector<capture::JobOutcome>& outcomes) {
  std::string text =
      "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].record) append_job(text, jobs[i].plan.program, *outcomes[i].record);
  }
  return text;
}

}  // namespace bubblesim::measure

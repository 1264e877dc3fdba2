#include "sim/sweep/execute.hpp"

#include <ctime>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/run/parallel.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/sweep/baseline_keys.hpp"

namespace bubblesim::sweep {
namespace {

Duration thread_cpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + Duration{now.tv_nsec};
}

std::string text_of(const Errors& faults) {
  std::string text;
  for (const Error& fault : faults) text += (text.empty() ? "" : "\n") + fault.text();
  return text;
}

CheckedResult<observe::RunReport> report_of(const store::PlannedRun& run,
                                            const policy::Registry& registry,
                                            const ExecuteOptions& options, SharedWork& shared) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::RunConfig config,
                             run::parse_run_config(run.config, options.sweep, registry));
  const Json json = Json::parse(run.config, nullptr, false);
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, shared.inputs.load(config, json));
  run::RunOptions how;
  how.baselines = {&shared.baselines, baseline_keys(json)};
  how.stop = options.stop;
  return run::run_policies(loaded, registry, how);
}

void fill(store::RunRecord& record, const observe::RunReport& report) {
  record.rows = observe::result_rows(report);
  record.counters = report.counters;
  for (std::uint32_t policy = 0; policy < report.policies.size(); ++policy) {
    const observe::PolicyResult& result = report.policies[policy];
    record.counters.merge(result.counters);
    for (std::uint32_t filler = 0; filler < result.fillers.size(); ++filler) {
      observe::LatencyHistogram histogram(result.fillers[filler].latency);
      if (histogram.completed() + histogram.unfinished() == 0) continue;
      record.latencies.push_back({policy, filler, std::move(histogram)});
    }
  }
}

void fail_with(store::RunRecord& record, std::string reason) {
  record.status = store::RunStatus::kFailed;
  record.reason = std::move(reason);
  record.rows.clear();
  record.latencies.clear();
}

store::RunRecord record_of(const store::PlannedRun& run, const ExecuteOptions& options) {
  store::RunRecord record;
  record.run = run;
  record.sweep = options.sweep;
  record.version = options.version;
  record.host = host_name();
  return record;
}

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

store::RunRecord failed_record(const store::PlannedRun& run, const ExecuteOptions& options,
                        std::string reason) {
  store::RunRecord record = record_of(run, options);
  fail_with(record, std::move(reason));
  record.finished_unix_ns = unix_now();
  return record;
}

store::RunRecord execute_run(const store::PlannedRun& run, const policy::Registry& registry,
                      const ExecuteOptions& options, SharedWork& shared) {
  const Duration started = thread_cpu();
  store::RunRecord record = record_of(run, options);
  // Policies from outside the tree may throw, and a run may need more memory than there is.
  try {
    const auto report = report_of(run, registry, options, shared);
    report ? fill(record, *report) : fail_with(record, text_of(report.error()));
  } catch (const std::bad_alloc&) {
    fail_with(record, "out of memory; expected more memory, fewer --threads or a shorter run");
  } catch (const std::exception& fault) {
    fail_with(record, std::string("threw an exception: ") + fault.what());
  } catch (...) {
    fail_with(record, "threw something that is no std::exception");
  }
  record.cpu = thread_cpu() - started;
  record.finished_unix_ns = unix_now();
  return record;
}

void execute_runs(const policy::Registry& registry, const ExecuteOptions& options,
                  const SweepPorts& ports) {
  SharedWork shared(options.device_folder);
  execute_runs(registry, options, ports, shared);
}

void execute_runs(const policy::Registry& registry, const ExecuteOptions& options,
                  const SweepPorts& ports, SharedWork& shared) {
  const std::size_t threads = options.threads == 0 ? 1 : options.threads;
  run::for_each_parallel(threads, threads, [&](std::size_t) {
    while (!ports.stopped()) {
      const std::optional<store::PlannedRun> run = ports.next();
      if (!run) return;
      ports.done(execute_run(*run, registry, options, shared));
    }
  });
}

}  // namespace bubblesim::sweep

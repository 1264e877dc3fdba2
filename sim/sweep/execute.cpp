#include "sim/sweep/execute.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <new>
#include <unistd.h>

#include "sim/base/json.hpp"
#include "sim/run/parallel.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::sweep {
namespace {

std::size_t bytes_of_job(const run::LoadedTraining& inputs) {
  std::size_t bytes = inputs.training->collectives.size() * sizeof(workload::JoinedCollective);
  for (const program::Program& rank : inputs.training->ranks) bytes += bytes_of(rank);
  return bytes;
}

}  // namespace

std::size_t bytes_of(const program::Program& program) {
  std::size_t bytes = sizeof program + program.ops.size() * sizeof(program::Op) +
                      program.edges.size() * sizeof(program::OpEdge) +
                      program.details.size() * sizeof(program::StepDetail) +
                      program.profiles.size() * sizeof(program::KernelProfile) +
                      program.memory.size() * sizeof(program::MemoryMark);
  for (const auto& thread : program.threads) bytes += thread.steps.size() * sizeof(program::Step);
  return bytes;
}

SharedWork::SharedWork(std::string devices, std::size_t bytes_kept)
    : device_folder(std::move(devices)),
      trainings(bytes_kept, &bytes_of_job),
      fillers(bytes_kept,
              [](const run::LoadedFiller& filler) { return bytes_of(filler.program); }) {}

CheckedResult<run::LoadedRun> SharedWork::load(const run::RunConfig& config, const Json& json) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto training, trainings.get(job_text(json), nullptr, [&] {
    return run::load_training(config, device_folder, {});
  }));
  const hardware::GpuSpec& device = training->device;
  // Devices of one name may come from different files.
  const std::string machine = device.name + '\n' + text_at(json, "/device") + '\n' +
                         text_at(json, "/training/synth/cluster") + '\n';
  BUBBLESIM_ASSIGN_OR_RETURN(run::LoadedRun run,
                             run::assemble_run(config, training, device_folder));
  for (std::size_t i = 0; i < config.fillers.size(); ++i) {
    const run::FillerConfig& filler = config.fillers[i];
    const std::string program = "/fillers/" + std::to_string(i) + "/program";
    const std::string key = machine + filler.name + '\n' + text_at(json, program);
    BUBBLESIM_ASSIGN_OR_RETURN(
        auto inputs, fillers.get(key, nullptr, [&] {
          return run::load_filler(filler, device, device_folder, {});
        }));
    run::add_filler(run, Shared<run::LoadedFiller>(std::move(inputs)));
  }
  return run;
}

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
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedRun loaded, shared.load(config, json));
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

void execute_runs(const std::vector<store::PlannedRun>& runs, const policy::Registry& registry,
                  const ExecuteOptions& options, const SweepPorts& ports, SharedWork& shared) {
  const std::size_t threads = std::max<std::size_t>(1, std::min(options.threads, runs.size()));
  std::atomic<std::size_t> next{0};
  run::for_each_parallel(threads, threads, [&](std::size_t) {
    while (!ports.stopped()) {
      const std::size_t index = next++;
      if (index >= runs.size()) return;
      if (ports.started) ports.started(runs[index]);
      ports.done(execute_run(runs[index], registry, options, shared));
    }
  });
}

RecordWriter::RecordWriter(store::ResultsStore& store, std::string kept_in)
    : store_(store), kept_in_(std::move(kept_in)), thread_([this] { work(); }) {}

RecordWriter::~RecordWriter() { (void)finish(); }

void RecordWriter::add(store::RunRecord&& record) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(record));
  if (waiting_.size() == 1 || waiting_.size() >= kLargestBatch) wake_.notify_one();
}

Result<void> RecordWriter::finish() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (!fault_) return {};
  Error fault = *fault_;
  if (kept_) {
    fault.message += "; what was in it and what is finished is kept in " + kept_in_ +
                     ", which `bubblesim results merge` takes";
  }
  if (lost_ > 0) {
    fault.message += "; " + std::to_string(lost_) + " finished runs could not be stored, and will "
                     "be run again";
  }
  return tl::unexpected<Error>(std::move(fault));
}

// From the first record on it waits for more, so that a batch costs one transaction; not so long
// that much is lost with the process.
void RecordWriter::work() {
  for (;;) {
    std::vector<store::RunRecord> batch;
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      wake_.wait_for(lock, kLongestWait,
                     [this] { return ending_ || waiting_.size() >= kLargestBatch; });
      last = ending_;
      batch.swap(waiting_);
    }
    if (!batch.empty()) store(batch);
    if (last) return;
  }
}

void RecordWriter::store(const std::vector<store::RunRecord>& batch) {
  const auto add = [&](store::ResultsStore& store) {
    auto stored = store.add(batch);
    if (!stored && !fault_) fault_ = stored.error();
    return stored.has_value();
  };
  if (!fault_ && add(store_)) return;
  failed_ = true;
  if (!kept_ && store_.is_gone() && !kept_in_.empty()) {
    if (auto kept = copied()) kept_ = *std::move(kept);
  }
  if (!kept_ || !add(*kept_)) lost_ += batch.size();
}

Result<std::unique_ptr<store::ResultsStore>> RecordWriter::copied() const {
  BUBBLESIM_ASSIGN_OR_RETURN(auto copy, store::open_store(kept_in_, store::StoreAccess::kWrite));
  Result<void> stored;
  BUBBLESIM_RETURN_IF_ERROR(store_.each_record([&](const store::RunRecord& record) {
    if (auto added = copy->add({&record, 1}); !added) stored = tl::unexpected<Error>(added.error());
  }));
  BUBBLESIM_RETURN_IF_ERROR(stored);
  return copy;
}

}  // namespace bubblesim::sweep

// sweep(): what the command `bubblesim sweep CONFIG --store FILE` does.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/plan.hpp"
#include "sim/sweep/program_version.hpp"
#include "sim/sweep/remaining.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::plugin::python {
namespace {

/// The runs that are left, on threads, into the store.
class Execution {
 public:
  Execution(std::vector<store::PlannedRun> runs, store::ResultsStore& store)
      : runs_(std::move(runs)), writer_(store) {}

  void execute(const policy::Registry& registry, const sweep::ExecuteOptions& options) {
    sweep::SweepPorts ports;
    ports.next = [&]() -> std::optional<store::PlannedRun> {
      const std::size_t index = next_++;
      if (index >= runs_.size()) return std::nullopt;
      return runs_[index];
    };
    ports.done = [&](store::RunRecord&& record) {
      if (record.status == store::RunStatus::kFailed) ++failed_;
      writer_.add(std::move(record));
      ++done_;
    };
    ports.stopped = [&] { return stop_ || writer_.failed(); };
    sweep::execute_runs(registry, options, ports);
  }
  [[nodiscard]] Result<void> finish() { return writer_.finish(); }
  [[nodiscard]] std::atomic<bool>& stop() { return stop_; }
  [[nodiscard]] std::size_t done() const { return done_; }
  [[nodiscard]] std::size_t failed() const { return failed_; }
  [[nodiscard]] std::size_t planned() const { return runs_.size(); }

 private:
  const std::vector<store::PlannedRun> runs_;
  sweep::RecordWriter writer_;
  std::atomic<std::size_t> next_{0}, done_{0}, failed_{0};
  std::atomic<bool> stop_{false};
};

py::dict outcome(const sweep::SweepPlan& plan, const sweep::RemainingRuns& left, std::size_t all,
                 const Execution& execution) {
  py::dict result;
  result["runs"] = plan.runs.size();
  result["stored"] = left.done + left.failed;
  result["done"] = execution.done();
  result["failed"] = execution.failed() + left.failed;
  result["left"] = all - execution.done();
  return result;
}

/// The function of the module; Python names and defaults its arguments.
struct ExecuteSweep {
  py::module_ module;

  py::dict operator()(const std::string& config_path, const std::string& store_path,
                      const std::vector<std::string>& set,
                      const std::optional<std::string>& configs, std::size_t threads,
                      std::optional<std::size_t> limit, bool retry_failed,
                      const py::object& progress) const {
    const policy::Registry registry = known_policies({});
    const std::string folder = config_folder(module, configs);
    const sweep::SweepConfig config = good(sweep::read_sweep_config(config_path, set));
    sweep::ExecuteOptions options;
    options.threads = threads;
    options.sweep = config.name;
    options.device_folder = folder + "/devices";
    options.version = sweep::program_version();
    const sweep::SweepPlan plan =
        good(sweep::plan_sweep(config, registry, {options.device_folder, options.version}));
    const auto store = good(store::open_store(store_path, store::StoreAccess::kWrite));
    good((*store).join(config.name, plan.runs));
    sweep::BestSoFar best{sweep::BestGoal{}};
    const auto kept = retry_failed ? sweep::FailedRuns::kRetry : sweep::FailedRuns::kKeep;
    sweep::RemainingRuns left =
        good(sweep::remaining_runs(plan.runs, config.name, *store, kept, best));
    const std::size_t all = left.runs.size();
    left.runs.resize(std::min(all, limit.value_or(all)));
    if (options.threads == 0) options.threads = std::max(1U, std::thread::hardware_concurrency());
    options.threads = std::max<std::size_t>(1, std::min(options.threads, left.runs.size()));
    Execution execution(std::move(left.runs), *store);
    std::size_t told = 0;
    const auto tell = [&] {
      if (progress.is_none() || told == execution.done()) return;
      told = execution.done();
      progress(told, execution.planned());
    };
    run_interruptibly([&] { execution.execute(registry, options); }, execution.stop(), tell);
    {
      Result<void> stored;
      {
        const py::gil_scoped_release unlocked;
        stored = execution.finish();
      }
      good(std::move(stored));
    }
    tell();
    return outcome(plan, left, all, execution);
  }
};

}  // namespace

void bind_sweep(py::module_& module) {
  module.def("execute_sweep", ExecuteSweep{module});
}

}  // namespace bubblesim::plugin::python

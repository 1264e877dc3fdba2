// sweep() and advise(): what the commands of these names do; what bubblesim.fleet asks besides.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <pybind11/stl.h>

#include "sim/advise/advice.hpp"
#include "sim/advise/answer.hpp"
#include "sim/base/json.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/report/advice/advice_page.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/store/results_store.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/plan.hpp"
#include "sim/sweep/program_version.hpp"
#include "sim/sweep/remaining.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::plugin::python {
namespace {

// sweep(): what the command `bubblesim sweep CONFIG --store FILE` does.

/// The runs that are left, on threads, into the store.
class Execution {
 public:
  Execution(std::vector<store::PlannedRun> runs, store::ResultsStore& store)
      : runs_(std::move(runs)), writer_(store) {}

  void execute(const policy::Registry& registry, const sweep::ExecuteOptions& options) {
    sweep::SweepPorts ports;
    ports.done = [&](store::RunRecord&& record) {
      if (record.status == store::RunStatus::kFailed) ++failed_;
      writer_.add(std::move(record));
      ++done_;
    };
    ports.stopped = [&] { return stop_ || writer_.failed(); };
    sweep::SharedWork shared(options.device_folder);
    sweep::execute_runs(runs_, registry, options, ports, shared);
  }
  [[nodiscard]] Result<void> finish() { return writer_.finish(); }
  [[nodiscard]] std::atomic<bool>& stop() { return stop_; }
  [[nodiscard]] std::size_t done() const { return done_; }
  [[nodiscard]] std::size_t failed() const { return failed_; }
  [[nodiscard]] std::size_t planned() const { return runs_.size(); }

 private:
  const std::vector<store::PlannedRun> runs_;
  sweep::RecordWriter writer_;
  std::atomic<std::size_t> done_{0}, failed_{0};
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

/// Python names and defaults its arguments, and those of the functions below.
py::dict execute_sweep(const std::string& config_path, const std::string& store_path,
                       const std::vector<std::string>& set,
                       const std::optional<std::string>& configs, std::size_t threads,
                       std::optional<std::size_t> limit, bool retry_failed,
                       const py::object& progress) {
  const policy::Registry registry = known_policies({});
  const std::string folder = config_folder(configs);
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
  Execution execution(std::move(left.runs), *store);
  std::size_t told = 0;
  const auto tell = [&] {
    if (progress.is_none() || told == execution.done()) return;
    told = execution.done();
    progress(told, execution.planned());
  };
  run_interruptibly([&] { execution.execute(registry, options); }, execution.stop(), tell);
  good(unlocked([&] { return execution.finish(); }));
  tell();
  return outcome(plan, left, all, execution);
}

}  // namespace

void bind_sweep(py::module_& module) {
  module.def("execute_sweep", &execute_sweep);
}

namespace {

// advise(): what the command `bubblesim advise QUESTION` does; what bubblesim.fleet asks besides.

/// The settings of an answer point into the registry.
struct AdviceOutput {
  policy::Registry registry;
  advise::Advice advice;
  std::string config;  ///< the file that the answer's commands name

  [[nodiscard]] std::string json() const {
    return indented_text(advise::advice_json(advice, config), 1) + "\n";
  }
  [[nodiscard]] std::string text() const { return advise::advice_text(advice, config); }
  [[nodiscard]] std::string page() const {
    const report::ShownAdvice shown{&advice, config};
    return report::advice_page({&shown, 1});
  }
  [[nodiscard]] const std::string& run_config() const { return advice.run_config; }
};

advise::Question question_of(const py::object& question, const std::optional<std::string>& base,
                             const policy::Registry& registry) {
  if (!py::isinstance<py::dict>(question)) {
    const py::object path = py::module_::import("os").attr("fspath")(question);
    return good(advise::read_question(path.cast<std::string>(), registry));
  }
  const py::object text = py::module_::import("json").attr("dumps")(question);
  const std::string folder =
      base.value_or(py::module_::import("os").attr("getcwd")().cast<std::string>());
  return good(advise::read_question_text(text.cast<std::string>(), folder + "/question", registry));
}

/// Trials as threads end them, told to Python by the thread that may.
class ToldProgress {
 public:
  explicit ToldProgress(py::object callback) : callback_(std::move(callback)) {}

  void note(const advise::Trial& trial, const advise::TrialResult& result,
            const advise::Limits& limits) {
    const std::scoped_lock lock(mutex_);
    best_.note(trial, result, limits);
  }

  void tell() {
    if (callback_.is_none()) return;
    std::size_t trials = 0;
    std::string text;
    {
      const std::scoped_lock lock(mutex_);
      trials = best_.trials;
      text = best_.text;
    }
    if (trials == told_) return;
    told_ = trials;
    callback_(trials, text);
  }

 private:
  py::object callback_;
  std::mutex mutex_;
  advise::BestTrial best_;
  std::size_t told_ = 0;
};

/// `stopped`, where a fleet asks: says whether the search ends now, with the best so far.
std::unique_ptr<AdviceOutput> answer_question(const py::object& asked,
                                              const std::optional<std::string>& base,
                                              const std::optional<std::string>& store_path,
                                              const std::optional<std::string>& configs,
                                              std::size_t threads, const py::object& callback,
                                              const std::vector<std::string>& libraries,
                                              const py::object& stopped) {
  auto output = std::make_unique<AdviceOutput>();
  output->registry = known_policies(libraries);
  advise::Question question = question_of(asked, base, output->registry);
  if (!stopped.is_none()) question.confirmed_at = advise::ConfirmedAt::kSearchedLength;
  output->config = question.name + "-advice.json";
  std::unique_ptr<store::ResultsStore> store;
  if (store_path) store = good(store::open_store(*store_path, store::StoreAccess::kWrite));
  std::atomic<bool> stop{false};
  ToldProgress progress(callback);
  advise::AnswerOptions options;
  options.config_folder = config_folder(configs);
  options.version = good(sweep::version_with_libraries({libraries.begin(), libraries.end()}));
  options.threads = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  options.store = store.get();
  options.stop = &stop;
  options.tried = [&](const advise::Trial& trial, const advise::TrialResult& result) {
    progress.note(trial, result, question.limits);
  };
  std::optional<CheckedResult<advise::Advice>> answered;
  run_interruptibly([&] { answered = advise::answer(question, output->registry, options); },
                    stop, [&] {
                      progress.tell();
                      if (!stopped.is_none() && stopped().cast<bool>()) stop = true;
                    });
  output->advice = good(*std::move(answered));
  progress.tell();
  return output;
}

/// By config: all that decides its runs, a text, or its faults. Files are read once.
py::list run_contents(const std::vector<std::string>& jobs,
                      const std::optional<std::string>& configs) {
  sweep::FileHashes files;
  py::list contents;
  for (const std::string& job : jobs) {
    const auto content = sweep::run_content(Json::parse(job, nullptr, false),
                                            config_folder(configs), files);
    contents.append(content ? py::object(py::str(*content)) : fault_list(content.error()));
  }
  return contents;
}

/// Why a run config does not load; empty: it does.
py::list load_faults(const std::string& config, const std::optional<std::string>& configs) {
  const auto parsed = run::parse_run_config(config, "config", known_policies({}));
  if (!parsed) return fault_list(parsed.error());
  const auto loaded = run::load_run(*parsed, config_folder(configs) + "/devices");
  return loaded ? py::list() : fault_list(loaded.error());
}

}  // namespace

void bind_advise(py::module_& module) {
  py::class_<AdviceOutput>(module, "AdviceOutput")
      .def_property_readonly("json", &AdviceOutput::json)
      .def_property_readonly("text", &AdviceOutput::text)
      .def_property_readonly("page", &AdviceOutput::page)
      .def_property_readonly("run_config", &AdviceOutput::run_config)
      .def_property_readonly("simulated",
                             [](const AdviceOutput& output) { return output.advice.simulated; })
      .def_property_readonly("stored",
                             [](const AdviceOutput& output) { return output.advice.stored; });
  module.def("answer_question", &answer_question);
  module.def("run_contents", &run_contents);
  module.def("load_faults", &load_faults);
  module.def("fleet_page", [](const std::string& plan) {
    return report::fleet_page(Json::parse(plan, nullptr, false));
  });
}

}  // namespace bubblesim::plugin::python

// advise(): what the command `bubblesim advise QUESTION` does; what bubblesim.fleet asks besides.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

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
#include "sim/sweep/program_version.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::plugin::python {
namespace {

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

/// The function of the module; Python names and defaults its arguments.
struct AnswerQuestion {
  py::module_ module;

  /// `stopped`, where a fleet asks: says whether the search ends now, with the best so far.
  std::unique_ptr<AdviceOutput> operator()(const py::object& asked,
                                           const std::optional<std::string>& base,
                                           const std::optional<std::string>& store_path,
                                           const std::optional<std::string>& configs,
                                           std::size_t threads, const py::object& callback,
                                           const std::vector<std::string>& libraries,
                                           const py::object& stopped) const {
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
    options.config_folder = config_folder(module, configs);
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
};

/// By config: all that decides its runs, a text, or its faults. Files are read once.
struct RunContents {
  py::module_ module;

  py::list operator()(const std::vector<std::string>& jobs,
                      const std::optional<std::string>& configs) const {
    sweep::FileHashes files;
    py::list contents;
    for (const std::string& job : jobs) {
      const auto content = sweep::run_content(Json::parse(job, nullptr, false),
                                              config_folder(module, configs), files);
      contents.append(content ? py::object(py::str(*content)) : fault_list(content.error()));
    }
    return contents;
  }
};

/// Why a run config does not load; empty: it does.
struct LoadFaults {
  py::module_ module;

  py::list operator()(const std::string& config, const std::optional<std::string>& configs) const {
    const auto parsed = run::parse_run_config(config, "config", known_policies({}));
    if (!parsed) return fault_list(parsed.error());
    const auto loaded = run::load_run(*parsed, config_folder(module, configs) + "/devices");
    return loaded ? py::list() : fault_list(loaded.error());
  }
};

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
  module.def("answer_question", AnswerQuestion{module});
  module.def("run_contents", RunContents{module});
  module.def("load_faults", LoadFaults{module});
  module.def("fleet_page", [](const std::string& plan) {
    return report::fleet_page(Json::parse(plan, nullptr, false));
  });
}

}  // namespace bubblesim::plugin::python

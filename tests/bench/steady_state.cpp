// How often a run becomes periodic, so that it could be skipped ahead: of each run config or sweep
// given, the training job alone and under each policy, from iteration times to the nanosecond.
//   steady_state [--seconds N] [--all-policies] FILE...  (configs/runs/*.json, configs/sweeps/...)
// --seconds: simulate so many of each, a quarter of them as warm-up (default: as the config says).
// --all-policies: not the config's, but each that there is, with its defaults. Of a sweep, every
// point once. Runs for iterations do 24 of them. Markdown on stdout: a row for each simulation, and
// how many of each kind are periodic, with the CPU time of all and of those.
//
// `period`: the fewest iterations p, of at most 64, with time[i] == time[i + p] on every rank from
// some iteration to the last, over two periods and half of the measured iterations at least.
// Periodic times are necessary, not sufficient: the state behind them must come again as well.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/time.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"
#include "sim/sweep/plan.hpp"

namespace bubblesim {
namespace {

constexpr std::size_t kLongestPeriod = 64;
constexpr std::uint64_t kIterations = 24;
const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";

struct Periodicity {
  std::size_t iterations = 0;  ///< measured, on the rank that has fewest
  std::size_t distinct = 0;    ///< times among them, of all ranks
  std::optional<std::size_t> period;
  std::size_t from = 0;        ///< first measured iteration from which on it holds
};

// The first iteration from which on times come again after `period`.
std::size_t periodic_from(const std::vector<Duration>& times, std::size_t period) {
  std::size_t from = times.size() - period;
  while (from > 0 && times[from - 1] == times[from - 1 + period]) --from;
  return from;
}

Periodicity periodicity_of(const observe::TrainingResult& training) {
  Periodicity found;
  std::vector<std::vector<Duration>> ranks;
  std::set<Duration> distinct;
  for (const observe::RankIterations& rank : training.ranks) {
    ranks.emplace_back(rank.times.begin() + static_cast<std::ptrdiff_t>(rank.first_counted),
                       rank.times.end());
    distinct.insert(ranks.back().begin(), ranks.back().end());
  }
  found.distinct = distinct.size();
  found.iterations = std::ranges::min_element(ranks, {}, &std::vector<Duration>::size)->size();
  for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
    if (period * 2 > found.iterations) break;
    std::size_t from = 0;
    for (const auto& times : ranks) from = std::max(from, periodic_from(times, period));
    if (from + std::max(2 * period, found.iterations / 2) > found.iterations) continue;
    found.period = period;
    found.from = from;
    break;
  }
  return found;
}

struct Options {
  std::optional<Duration> length;  ///< simulated; nothing: the config's
  bool all_policies = false;
  std::vector<std::string> files;
};

/// What stands in one line of the summary.
struct Tally {
  std::size_t runs = 0;
  std::size_t short_periods = 0;  ///< of 1 to 4 iterations
  std::size_t long_periods = 0;
  double cpu_s = 0;
  double periodic_cpu_s = 0;         ///< of those with a period, short or long
};

class Analysis {
 public:
  explicit Analysis(const Options& options) : options_(options) {
    registry_ = policies::builtin_policies();
    fmt::print("| run | policy | kind | iterations | distinct times | period | from |\n");
    fmt::print("|---|---|---|--:|--:|--:|--:|\n");
  }

  bool add_file(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find("\"base\"") != std::string::npos) return add_sweep(path);
    const auto config = run::read_run_config(path, registry_);
    return config ? add_run(*config, "") : refuse(config.error());
  }

  void print_summary() const {
    fmt::print("\n| kind | simulations | period of 1 to 4 | longer | none | CPU s | periodic |\n");
    fmt::print("|---|--:|--:|--:|--:|--:|--:|\n");
    for (const auto& [kind, tally] : tallies_) {
      fmt::print("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} |\n", kind, tally.runs,
                 tally.short_periods, tally.long_periods,
                 tally.runs - tally.short_periods - tally.long_periods, tally.cpu_s,
                 tally.periodic_cpu_s);
    }
  }

 private:
  static bool refuse(const Errors& faults) {
    for (const Error& fault : faults) fmt::print(stderr, "{}\n", fault.text());
    return false;
  }

  bool add_sweep(const std::string& path) {
    const auto sweep = sweep::read_sweep_config(path, {});
    if (!sweep) return refuse(sweep.error());
    const auto plan = sweep::plan_sweep(*sweep, registry_, {kConfigs + "/devices", ""});
    if (!plan) return refuse(plan.error());
    std::set<std::string> points;
    for (const store::PlannedRun& planned : plan->runs) {
      if (!points.insert(planned.point).second) continue;
      const auto config = run::parse_run_config(planned.config, path, registry_);
      if (!config) return refuse(config.error());
      if (!add_run(*config, sweep::settings_text(planned.settings))) return false;
    }
    return true;
  }

  bool add_run(run::RunConfig config, const std::string& settings) {
    if (config.iterations) config.iterations = kIterations;
    if (config.duration && options_.length) {
      config.duration = *options_.length;
      config.warmup = *options_.length / 4;
    }
    if (options_.all_policies) {
      config.policies.clear();
      for (const policy::PolicySpec& spec : registry_.all()) {
        config.policies.push_back({spec.name, policy::defaults(spec)});
      }
    }
    const auto loaded = run::load_run(config, kConfigs + "/devices");
    if (!loaded) return refuse(loaded.error());
    const auto bubbles = schedule::measure_bubbles(*loaded->training, loaded->device);
    if (!bubbles) return refuse({bubbles.error()});
    name_ = config.name + (settings.empty() ? "" : ": " + settings);
    // Runs of a sweep share what is alone.
    const std::string job = fmt::format("{} {} {}", config.name, loaded->device.name,
                                        loaded->training->ranks.front().ops.size());
    if (alone_.insert(job).second && !simulate(*loaded, {})) return false;
    for (const run::PolicyChoice& choice : config.policies) {
      run::RunScenario scenario;
      scenario.policy = *registry_.find(choice.name);
      scenario.parameters = &choice.parameters;
      scenario.bubbles = &*bubbles;
      for (std::uint32_t i = 0; i < config.fillers.size(); ++i) scenario.fillers.push_back(i);
      if (!simulate(*loaded, scenario)) return false;
    }
    return true;
  }

  bool simulate(const run::LoadedRun& loaded, const run::RunScenario& scenario) {
    const std::clock_t begin = std::clock();
    const auto result = run::Simulation(loaded, scenario).run();
    if (!result) return refuse({result.error()});
    const double cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    const Periodicity found = periodicity_of(result->training);
    const std::string kind = kind_of(loaded, *result);
    Tally& tally = tallies_[kind];
    ++tally.runs;
    tally.cpu_s += cpu_s;
    if (found.period) tally.periodic_cpu_s += cpu_s;
    if (found.period) ++(*found.period <= 4 ? tally.short_periods : tally.long_periods);
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", name_,
               scenario.policy == nullptr ? "alone" : scenario.policy->name, kind,
               found.iterations, found.distinct,
               found.period ? std::to_string(*found.period) : "-",
               found.period ? std::to_string(found.from) : "-");
    return true;
  }

  // Jitter is randomness of the training job itself, arrivals are the fillers'.
  static std::string kind_of(const run::LoadedRun& loaded, const observe::PolicyResult& result) {
    std::string kind = "alone";
    if (!result.fillers.empty()) {
      kind = "no filler ran";  // in the measured window
      for (const observe::FillerResult& filler : result.fillers) {
        if (filler.passes == 0) continue;
        kind = observe::filler_mode_name(filler.mode);
        if (filler.mode == observe::FillerMode::kOnline) break;
      }
    }
    return loaded.config.training.jitter_cv > 0 ? kind + ", jitter" : kind;
  }

  policy::Registry registry_;
  Options options_;
  std::string name_;
  std::set<std::string> alone_;
  std::map<std::string, Tally> tallies_;
};

int analyse(const Options& options) {
  Analysis analysis(options);
  for (const std::string& file : options.files) {
    if (!analysis.add_file(file)) return 1;
  }
  analysis.print_summary();
  return 0;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--all-policies") {
      options.all_policies = true;
    } else if (argument == "--seconds" && i + 1 < argc) {
      options.length = Duration{std::stoll(argv[++i]) * 1'000'000'000};
    } else {
      options.files.push_back(argument);
    }
  }
  return options;
}

}  // namespace
}  // namespace bubblesim

int main(int argc, char** argv) {
  return bubblesim::analyse(bubblesim::options_of(argc, argv));
}

#include "sim/sweep/plan.hpp"

#include <filesystem>
#include <iomanip>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/run/run_config.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
namespace {

constexpr std::size_t kMostFaults = 20;  // that are shown

// "1200000", or "1e+12" where it is long.
std::string count_text(double runs) {
  std::ostringstream text;
  text << std::setprecision(runs < 1e9 ? 9 : 3) << runs;
  return text.str();
}

/// A point of the sweep: the base with settings.
struct Point {
  Json config;
  std::vector<store::Setting> settings;
};

/// Faults of points, equal ones together.
class PointFaults {
 public:
  explicit PointFaults(const SweepConfig& sweep) : sweep_(sweep) {}

  void add(const Error& fault, std::size_t point, const Point& where) {
    const auto [found, fresh] = index_.try_emplace(fault.place + '\n' + fault.message,
                                                   faults_.size());
    if (fresh) faults_.push_back({fault, point, where.settings, 0});
    ++faults_[found->second].points;
  }

  [[nodiscard]] bool empty() const { return faults_.empty(); }

  [[nodiscard]] Errors texts(std::size_t points) const {
    Errors out;
    for (const Kept& kept : faults_) {
      if (out.size() == kMostFaults) {
        out.push_back({sweep_.file, {}, std::to_string(faults_.size() - kMostFaults) +
                                            " more faults of other kinds"});
        break;
      }
      Error fault = kept.fault;
      if (fault.file.empty()) fault.file = sweep_.base.file;
      if (!sweep_.groups.empty()) fault.message += "; " + where(kept, points);
      out.push_back(std::move(fault));
    }
    return out;
  }

 private:
  struct Kept {
    Error fault;
    std::size_t point = 0;
    std::vector<store::Setting> settings;
    std::size_t points = 0;
  };

  [[nodiscard]] std::string where(const Kept& kept, std::size_t points) const {
    const std::string first =
        "point " + std::to_string(kept.point) + " (" + settings_text(kept.settings) + ")";
    if (kept.points == 1) return "in " + first + " of " + sweep_.file;
    const std::string many =
        kept.points == points ? "in all " : "in " + std::to_string(kept.points) + " of ";
    return many + std::to_string(points) + " points of " + sweep_.file + ", first in " + first;
  }

  const SweepConfig& sweep_;
  std::map<std::string, std::size_t> index_;
  std::vector<Kept> faults_;
};

/// A condition of axes, and what was found at its place.
class Condition {
 public:
  explicit Condition(const store::Setting& setting)
      : pointer_(setting.pointer), value_(Json::parse(setting.value, nullptr, false)) {}

  [[nodiscard]] bool holds(const Json& config) {
    const Json* found = find_value(config, pointer_);
    const bool equal = found != nullptr && *found == value_;
    held_ = held_ || equal;
    if (!held_ && found != nullptr && found_.size() < kMostFound) {
      found_.insert(canonical_text(*found));
    }
    return equal;
  }

  /// Why it holds nowhere; empty: it does somewhere.
  [[nodiscard]] std::string fault() const {
    if (held_) return {};
    if (found_.empty()) return "no point has " + quote_found(pointer_);
    const std::vector<std::string_view> values(found_.begin(), found_.end());
    return "no point has " + canonical_text(value_) + " at " + quote_found(pointer_) +
           "; found there: " + list_names(values);
  }

 private:
  static constexpr std::size_t kMostFound = 25;

  std::string pointer_;
  Json value_;
  bool held_ = false;
  std::set<std::string> found_;
};

/// Those of a group, all of which must hold.
struct Conditions {
  std::vector<Condition> when;
  bool held = false;  // in some point
};

class Planner {
 public:
  Planner(const SweepConfig& sweep, const policy::Registry& registry, const PlanOptions& options)
      : sweep_(sweep), registry_(registry), options_(options), faults_(sweep),
        configs_(std::filesystem::path(options.device_folder).parent_path().string()),
        base_folder_(std::filesystem::path(sweep.base.file).parent_path().string()) {
    for (const AxisGroup& group : sweep.groups) {
      auto& values = values_.emplace_back();
      for (const SweepAxis& axis : group.axes) {
        auto& parsed = values.emplace_back();
        for (const std::string& text : axis.values) {
          parsed.push_back(Json::parse(text, nullptr, false));
        }
      }
      conditions_.push_back({{group.when.begin(), group.when.end()}});
    }
  }

  CheckedResult<SweepPlan> plan() {
    const bool many = least_runs() > static_cast<double>(kMostRuns);
    if (!many) expand(0, {Json::parse(sweep_.base.text, nullptr, false), {}});
    if (many || full()) {
      return fail(sweep_.file, "/axes",
                  "found " + (many ? count_text(least_runs()) : "more than a million") +
                      " runs; a sweep has at most a million, for a plan is held in memory; "
                      "expected fewer values or repetitions, a \"sample\" of the axes, or several "
                      "sweeps, each with an axis fixed by --set: one store may hold them all");
    }
    if (!faults_.empty()) return tl::unexpected<Errors>(faults_.texts(points_));
    if (Errors idle = idle_axes(); !idle.empty()) return tl::unexpected<Errors>(std::move(idle));
    plan_.points = points_;
    return std::move(plan_);
  }

 private:
  // Without what depends on conditions.
  [[nodiscard]] double least_runs() const {
    double runs = sweep_.repetitions;
    for (const AxisGroup& group : sweep_.groups) {
      if (group.when.empty()) runs *= static_cast<double>(group.axes.front().values.size());
    }
    return runs;
  }

  [[nodiscard]] bool full() const { return points_ * sweep_.repetitions > kMostRuns; }

  // All conditions are asked, for what they find.
  [[nodiscard]] bool holds(std::size_t group, const Json& config) {
    bool all = true;
    for (Condition& condition : conditions_[group].when) all = condition.holds(config) && all;
    conditions_[group].held = conditions_[group].held || all;
    return all;
  }

  [[nodiscard]] Errors idle_axes() const {
    Errors faults;
    for (std::size_t group = 0; group < conditions_.size(); ++group) {
      if (conditions_[group].held || sweep_.groups[group].when_overridden) continue;
      std::string why;
      for (const Condition& condition : conditions_[group].when) {
        if (const std::string fault = condition.fault(); !fault.empty()) {
          why += (why.empty() ? "" : "; ") + fault;
        }
      }
      faults.push_back({sweep_.file, "/axes",
                        "the axis of " + quote_found(sweep_.groups[group].axes.front().pointer) +
                            " applies nowhere: " +
                            (why.empty() ? "no point meets its whole \"when\"" : why)});
    }
    return faults;
  }

  void expand(std::size_t level, Point point) {
    if (full()) return;
    if (level == sweep_.groups.size()) return add(point);
    if (!holds(level, point.config)) return expand(level + 1, std::move(point));
    const AxisGroup& group = sweep_.groups[level];
    for (std::size_t n = 0; n < group.axes.front().values.size() && !full(); ++n) {
      Point next = point;
      for (std::size_t i = 0; i < group.axes.size(); ++i) {
        const SweepAxis& axis = group.axes[i];
        next.settings.push_back({axis.pointer, axis.values[n]});
        const auto set = set_value(next.config, axis.pointer, values_[level][i][n]);
        if (!set) return faults_.add(set.error(), points_, next);
      }
      expand(level + 1, std::move(next));
    }
  }

  void add(Point& point) {
    const std::size_t number = points_++;
    if (full()) return;
    make_paths_absolute(point.config, base_folder_);
    const auto config =
        run::parse_run_config(compact_text(point.config), sweep_.base.file, registry_);
    if (!config) {
      for (const Error& fault : config.error()) faults_.add(fault, number, point);
      return;
    }
    const auto content = run_content(point.config, configs_, files_);
    if (!content) {
      for (const Error& fault : content.error()) faults_.add(fault, number, point);
      return;
    }
    add_runs(point, *content, config->seed, number);
  }

  void add_runs(Point& point, const std::string& content, std::uint64_t seed,
                std::size_t number) {
    const std::string key = point_key(content);
    seed = first_seed(point, seed, number);
    if (sweep_.repetitions - 1 > std::numeric_limits<std::uint64_t>::max() - seed) {
      faults_.add({{}, "/seed", "repetitions go beyond the largest seed"}, number, point);
      return;
    }
    for (std::uint32_t i = 0; i < sweep_.repetitions; ++i) {
      store::PlannedRun run;
      run.seed = seed + i;
      run.key = run_key(content, run.seed, options_.version);
      if (!keys_.insert(run.key).second) {
        ++plan_.repeated;
        continue;
      }
      run.index = plan_.runs.size();
      run.point = key;
      run.settings = point.settings;
      run.repetition = repetitions_[key]++;
      point.config["seed"] = run.seed;
      run.config = compact_text(point.config);
      plan_.runs.push_back(std::move(run));
    }
  }

  // The sweep's, unless an axis sets it: then repetitions go on from there, if there is one.
  std::uint64_t first_seed(const Point& point, std::uint64_t seed, std::size_t number) {
    bool axis = false;
    for (const store::Setting& setting : point.settings) axis = axis || setting.pointer == "/seed";
    if (axis && (sweep_.repetitions > 1 || sweep_.first_seed)) {
      faults_.add({{}, "/seed", "an axis sets the seed, and so do \"repetitions\" or "
                                "\"first_seed\"; expected one of them"},
                  number, point);
    }
    return axis ? seed : sweep_.first_seed.value_or(seed);
  }

  const SweepConfig& sweep_;
  const policy::Registry& registry_;
  const PlanOptions& options_;
  PointFaults faults_;
  std::string configs_;
  std::string base_folder_;
  FileHashes files_;
  std::vector<std::vector<std::vector<Json>>> values_;  // by group, axis, number
  std::vector<Conditions> conditions_;                  // by group
  SweepPlan plan_;
  std::size_t points_ = 0;
  std::set<std::string> keys_;
  std::map<std::string, std::uint32_t> repetitions_;    // planned, by point
};

}  // namespace

CheckedResult<SweepPlan> plan_sweep(const SweepConfig& sweep, const policy::Registry& registry,
                                    const PlanOptions& options) {
  return Planner(sweep, registry, options).plan();
}

std::vector<store::PlannedRun> shard_of(const std::vector<store::PlannedRun>& plan, Shard shard) {
  std::vector<store::PlannedRun> runs;
  for (std::size_t i = shard.index; i < plan.size(); i += shard.count) runs.push_back(plan[i]);
  return runs;
}

std::string settings_text(const std::vector<store::Setting>& settings) {
  std::string text;
  for (const store::Setting& setting : settings) {
    text += (text.empty() ? "" : ", ") + setting.pointer + " = " + setting.value;
  }
  return text.empty() ? "no settings" : text;
}

}  // namespace bubblesim::sweep

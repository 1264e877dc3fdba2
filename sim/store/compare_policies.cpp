#include "sim/store/compare_policies.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/add_once.hpp"
#include "sim/base/check.hpp"
#include "sim/base/nearest.hpp"
#include "sim/observe/batch_means.hpp"

namespace bubblesim::store {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

}  // namespace

void PolicyLabels::see(const std::string& policy, const std::string& parameters) {
  seen_[policy].insert(parameters);
}

std::string PolicyLabels::label(const std::string& policy, const std::string& parameters) const {
  const auto& all = seen_.at(policy);
  if (all.size() < 2) return policy;
  std::string label;
  for (const std::string& part : split(parameters, ';')) {
    const bool common = std::all_of(all.begin(), all.end(), [&](const std::string& other) {
      const auto parts = split(other, ';');
      return std::find(parts.begin(), parts.end(), part) != parts.end();
    });
    if (!common) label += (label.empty() ? "" : ", ") + part;
  }
  return label.empty() ? policy : policy + "(" + label + ")";
}

bool is_of_point(const Setting& setting) {
  return !setting.pointer.starts_with("/policies") && setting.pointer != "/seed";
}

namespace {

struct Value {
  double value = 0;
  std::string run;  ///< its key
  bool lower_bound = false;
  bool overloaded = false;
  std::string losses;
};

/// One metric of one policy, by what is paired.
struct Series {
  std::string metric;
  std::string filler;
  std::vector<Setting> point;
  std::vector<std::pair<std::string, std::map<std::string, Value>>> policies;  ///< as first seen

  std::map<std::string, Value>& values(const std::string& policy) {
    for (auto& [name, values] : policies) {
      if (name == policy) return values;
    }
    return policies.emplace_back(policy, std::map<std::string, Value>()).second;
  }
};

/// Whether the column is about a filler, not about the whole run.
bool is_of_filler(std::string_view column) {
  if (column == "filler_sm_fraction") return false;
  for (const std::string_view start : {"filler", "requests_", "latency_", "jobs_"}) {
    if (column.starts_with(start)) return true;
  }
  return false;
}

class Comparer {
 public:
  Comparer(const CompareOptions& options, std::vector<std::size_t> metrics)
      : options_(options), metrics_(std::move(metrics)) {}

  [[nodiscard]] Result<Comparison> compare(ResultsStore& store) {
    // Parameters need names before values can be grouped by them: the rows are read twice.
    BUBBLESIM_RETURN_IF_ERROR(store.each_row(options_.filter, [this](const StoredRow& row) {
      labels_.see(text_in(row.row, "policy"), text_in(row.row, "policy_parameters"));
    }));
    BUBBLESIM_RETURN_IF_ERROR(
        store.each_row(options_.filter, [this](const StoredRow& row) { take(row); }));
    if (order_.empty()) return fail("found no rows to compare; 'list' shows what there is");
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string baseline, baseline_label());
    Comparison result{baseline, options_.confidence, {}};
    for (auto& [key, series] : series_) add_lines(series, result);
    return result;
  }

 private:
  void take(const StoredRow& row) {
    const std::string policy =
        labels_.label(text_in(row.row, "policy"), text_in(row.row, "policy_parameters"));
    add_once(order_, policy);
    std::vector<Setting> point;
    std::string settings;
    for (const Setting& setting : row.run.settings) {
      if (!is_of_point(setting)) continue;
      point.push_back(setting);
      settings += setting.pointer + '=' + setting.value + '\n';
    }
    const std::string pair = row.sweep + '\n' + std::to_string(row.run.seed) + '\n' + settings;
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      const std::size_t column = metrics_[i];
      const auto value = number_of(row.row.cells[column]);
      if (!value) continue;
      const std::string_view name = observe::result_columns()[column].name;
      const std::string filler = is_of_filler(name) ? text_in(row.row, "filler") : "";
      const bool by_point = options_.group == ComparisonGroup::kPoint;
      Series& series = series_[{i, filler, by_point ? settings : ""}];
      series.metric = name;
      series.filler = filler;
      if (by_point) series.point = point;
      // A run that several points contain is the same run: the first stands for all.
      series.values(policy).emplace(pair, Value{*value, row.run.key, is_lower_bound(row.row, name),
                                            is_overloaded(row.row, name),
                                            text_in(row.row, "losses")});
    }
  }

  [[nodiscard]] Result<std::string> baseline_label() const {
    if (options_.baseline.empty()) return order_.front();
    const auto found = std::find_if(order_.begin(), order_.end(), [&](const std::string& label) {
      return label == options_.baseline || label.starts_with(options_.baseline + "(");
    });
    if (found != order_.end()) return *found;
    return fail(unknown_name_message("policy", options_.baseline, order_));
  }

  void add_lines(Series& series, Comparison& result) const {
    const std::map<std::string, Value> baseline = series.values(result.baseline);
    for (const std::string& policy : order_) {
      if (policy == result.baseline) continue;
      PolicyComparison line;
      line.metric = series.metric;
      line.filler = series.filler;
      line.point = series.point;
      line.policy = policy;
      std::vector<double> differences;
      std::set<std::pair<std::string_view, std::string_view>> counted;
      for (const auto& [pair, value] : series.values(policy)) {
        const auto other = baseline.find(pair);
        if (other == baseline.end()) {
          ++line.unpaired;
          continue;
        }
        // Two runs that several sweeps contain are one pair.
        if (!counted.emplace(value.run, other->second.run).second) continue;
        ++line.pairs;
        line.lower_bounds += value.lower_bound || other->second.lower_bound ? 1 : 0;
        line.overloaded += value.overloaded || other->second.overloaded ? 1 : 0;
        for (const std::string& losses : {value.losses, other->second.losses}) {
          if (!losses.empty()) line.losses.insert(losses);
        }
        line.mean += value.value;
        line.baseline_mean += other->second.value;
        differences.push_back(value.value - other->second.value);
      }
      if (line.pairs == 0 && line.unpaired == 0) continue;
      finish(line, differences, result.confidence);
      result.lines.push_back(std::move(line));
    }
  }

  static void finish(PolicyComparison& line, const std::vector<double>& differences,
                     double confidence) {
    if (line.pairs == 0) return;
    const auto pairs = static_cast<double>(line.pairs);
    line.mean /= pairs;
    line.baseline_mean /= pairs;
    line.difference = std::accumulate(differences.begin(), differences.end(), 0.0) / pairs;
    if (line.pairs > 1) line.half_width = paired_half_width(differences, confidence);
  }

  const CompareOptions& options_;
  std::vector<std::size_t> metrics_;
  PolicyLabels labels_;
  std::vector<std::string> order_;  ///< of policies, as first seen
  std::map<std::tuple<std::size_t, std::string, std::string>, Series> series_;
};

}  // namespace

std::span<const std::string> default_metrics() {
  static const std::vector<std::string> names{"training_normalised_fraction",
                                              "filler_normalised_fraction", "latency_p95_ms"};
  return names;
}

bool is_lower_bound(const observe::ResultRow& row, std::string_view column) {
  static constexpr std::string_view kOrder[] = {"p50", "p90", "p95", "p99", "max"};
  if (!column.starts_with("latency_")) return false;
  const std::string from = text_in(row, "latency_lower_bound_from");
  if (from.empty()) return false;
  if (column == "latency_mean_ms") return true;
  const auto rank = [](std::string_view text) {
    return std::find(std::begin(kOrder), std::end(kOrder), text) - std::begin(kOrder);
  };
  return rank(column.substr(8, 3)) >= rank(from);
}

bool is_overloaded(const observe::ResultRow& row, std::string_view column) {
  return column.starts_with("latency_") && number_in(row, "overloaded") == 1;
}

Result<std::size_t> find_column(std::string_view name) {
  const auto columns = observe::result_columns();
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
    if (columns[i].type != observe::CellType::kText) names.push_back(columns[i].name);
  }
  return fail(unknown_name_message("metric", name, names));
}

Result<void> check_confidence(double confidence) {
  if (confidence > 0 && confidence < 1) return {};
  return fail("found a confidence of " + std::to_string(confidence) +
              ", expected one between 0 and 1, such as 0.95");
}

double paired_half_width(std::span<const double> differences, double confidence) {
  BUBBLESIM_CHECK(differences.size() > 1, "an interval needs two differences");
  const auto count = static_cast<double>(differences.size());
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  double squares = 0;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double deviation = std::sqrt(squares / (count - 1));
  return observe::students_t(count, confidence) * deviation / std::sqrt(count);
}

Result<Comparison> compare_policies(ResultsStore& store, const CompareOptions& options) {
  BUBBLESIM_RETURN_IF_ERROR(check_confidence(options.confidence));
  std::vector<std::size_t> metrics;
  const std::span<const std::string> names =
      options.metrics.empty() ? default_metrics() : std::span<const std::string>(options.metrics);
  for (const std::string& name : names) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::size_t column, find_column(name));
    if (observe::result_columns()[column].type == observe::CellType::kText) {
      return fail("found metric \"" + name + "\", which is a text; expected a column of numbers");
    }
    metrics.push_back(column);
  }
  return Comparer(options, std::move(metrics)).compare(store);
}

}  // namespace bubblesim::store

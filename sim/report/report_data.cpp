#include "sim/report/report_data.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/json.hpp"
#include "sim/report/report_parts.hpp"
#include "sim/store/store_reader.hpp"

namespace bubblesim::report {
namespace {

class StoreReading {
 public:
  explicit StoreReading(const store::RowFilter& filter, ReportData& data)
      : filter_(filter), data_(data) {}

  void take(const store::RunRecord& record) {
    ReportSweep& sweep = sweep_of(record);
    if (record.status == store::RunStatus::kFailed) {
      ++sweep.failed;
      add_failure(record);
      add_counters(record);
      return;
    }
    const bool shown = std::any_of(record.rows.begin(), record.rows.end(),
                                   [&](const auto& row) { return store::passes(row, filter_); });
    if (!shown) return;
    ++sweep.done;
    add_run(record);
    for (const observe::ResultRow& row : record.rows) {
      if (store::passes(row, filter_)) add_row(record, row);
    }
  }

  [[nodiscard]] ReportSource source() && {
    for (auto& [name, counter] : counters_) data_.counters.push_back(counter);
    for (ReportRun& run : data_.runs) {
      for (auto& [counter, count] : run.counters) counter = place_of_counter(counter);
    }
    return std::move(source_);
  }

 private:
  ReportSweep& sweep_of(const store::RunRecord& record) {
    if (data_.sweeps.empty() || data_.sweeps.back().name != record.sweep) {
      data_.sweeps.emplace_back().name = record.sweep;
      base_ = Json();
    }
    return data_.sweeps.back();
  }

  void add_failure(const store::RunRecord& record) {
    if (data_.failures.size() >= kReportFailures) {
      ++data_.failures_left_out;
      return;
    }
    data_.failures.push_back({record.run.key, record.sweep, record.run.index, record.run.seed,
                              record.run.settings, record.reason, record.host, record.version,
                              record.finished_unix_ns});
  }

  void add_run(const store::RunRecord& record) {
    ReportRun& run = data_.runs.emplace_back();
    run.key = record.run.key;
    run.sweep = static_cast<std::uint32_t>(data_.sweeps.size() - 1);
    run.index = record.run.index;
    run.seed = record.run.seed;
    run.host = place_in(data_.hosts, record.host);
    run.version = place_in(data_.versions, record.version);
    run.device = place_in(data_.devices, text_of(record.rows[0], "device"));
    run.finished_unix_ns = record.finished_unix_ns;
    run.cpu_s = to_seconds(record.cpu);
    run.patch = patch_of(record.run.config);
    run.counters = add_counters(record);
    source_.settings.push_back(record.run.settings);
  }

  /// Configs of a sweep are alike: each is kept as its difference from the first.
  std::optional<std::string> patch_of(const std::string& text) {
    Json config = Json::parse(text, nullptr, false);
    std::string kept;
    if (base_.is_null()) {
      data_.sweeps.back().base_config = text;
      base_ = std::move(config);
      kept = "[]";
    } else {
      kept = compact_text(Json::diff(base_, config));
    }
    if (config_bytes_ + kept.size() > kReportConfigBytes) {
      ++data_.configs_left_out;
      return std::nullopt;
    }
    config_bytes_ += kept.size();
    return kept;
  }

  std::vector<std::pair<std::uint32_t, std::uint64_t>> add_counters(
      const store::RunRecord& record) {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> counted;
    for (const auto& [name, entry] : record.counters) {
      auto [place, fresh] = counters_.try_emplace(name, ReportCounter{name, entry, 0});
      if (fresh) {
        place->second.entry.count = 0;
        first_seen_.push_back(name);
        numbers_.emplace(name, static_cast<std::uint32_t>(first_seen_.size() - 1));
      }
      place->second.entry.count += entry.count;
      ++place->second.runs;
      counted.emplace_back(numbers_.at(name), entry.count);
    }
    return counted;
  }

  /// Counters stand by name; runs have them as first seen.
  [[nodiscard]] std::uint32_t place_of_counter(std::uint32_t seen) const {
    return static_cast<std::uint32_t>(
        std::distance(counters_.begin(), counters_.find(first_seen_[seen])));
  }

  void add_row(const store::RunRecord& record, const observe::ResultRow& row) {
    static const std::size_t oracle = store::find_column("oracle").value();
    PageRow& shown = source_.rows.emplace_back();
    shown.run = static_cast<std::uint32_t>(data_.runs.size() - 1);
    shown.policy = text_of(row, "policy");
    shown.parameters = text_of(row, "policy_parameters");
    for (const store::Setting& setting : record.run.settings) leave_out(shown.parameters, setting);
    shown.filler = text_of(row, "filler");
    const auto* sees_future = std::get_if<std::int64_t>(&row.cells[oracle]);
    shown.losses = text_of(row, "losses");
    shown.oracle = sees_future != nullptr && *sees_future != 0;
    for (std::size_t i = 0; i < report_metrics().size(); ++i) {
      shown.figures.push_back(metric_of(row, i));
      shown.lower_bounds.push_back(store::is_lower_bound(row, report_metrics()[i].column));
      shown.overloaded.push_back(store::is_overloaded(row, report_metrics()[i].column));
    }
  }

  /// A parameter that the sweep varies is an axis, no part of the policy's name.
  static void leave_out(std::string& parameters, const store::Setting& setting) {
    const std::string name = swept_parameter(setting);
    if (name.empty()) return;
    const std::string text = ';' + parameters + ';';
    const std::size_t from = text.find(';' + name + '=');
    if (from == std::string::npos) return;
    const std::string rest = text.substr(0, from) + text.substr(text.find(';', from + 1));
    parameters = rest.size() < 2 ? "" : rest.substr(1, rest.size() - 2);
  }

  const store::RowFilter& filter_;
  ReportData& data_;
  ReportSource source_;
  Json base_;
  std::size_t config_bytes_ = 0;
  std::map<std::string, ReportCounter> counters_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> first_seen_;
};

}  // namespace

std::uint32_t place_in(std::vector<std::string>& list, const std::string& text) {
  const auto found = std::find(list.begin(), list.end(), text);
  if (found != list.end()) return static_cast<std::uint32_t>(found - list.begin());
  list.push_back(text);
  return static_cast<std::uint32_t>(list.size() - 1);
}

Result<ReportSource> read_store(store::ResultsStore& store, const ReportOptions& options,
                                ReportData& data) {
  StoreReading reading(options.filter, data);
  store::RowFilter filter = options.filter;
  if (filter.sweeps.empty()) {  // named, so that a run comes under each of its sweeps
    std::set<std::string> sweeps;
    BUBBLESIM_RETURN_IF_ERROR(
        store.each_run(filter, [&](const store::StoredRun& run) { sweeps.insert(run.sweep); }));
    if (sweeps.empty()) return std::move(reading).source();
    filter.sweeps.assign(sweeps.begin(), sweeps.end());
  }
  BUBBLESIM_RETURN_IF_ERROR(
      store.each_record(filter, [&](const store::RunRecord& record) { reading.take(record); }));
  return std::move(reading).source();
}

ReportValue mean_over_seeds(const std::vector<std::optional<double>>& values, double confidence) {
  std::vector<double> there;
  for (const auto& value : values) {
    if (value) there.push_back(*value);
  }
  ReportValue result;
  result.seeds = static_cast<std::uint32_t>(there.size());
  if (there.empty()) return result;
  result.mean =
      std::accumulate(there.begin(), there.end(), 0.0) / static_cast<double>(there.size());
  if (there.size() > 1) result.half_width = store::paired_half_width(there, confidence);
  return result;
}

Result<ReportData> collect_report(store::ResultsStore& store, const ReportOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1)) {
    return fail("found a confidence of " + std::to_string(options.confidence) +
                ", expected one between 0 and 1, such as 0.95");
  }
  ReportData data;
  data.confidence = options.confidence;
  BUBBLESIM_ASSIGN_OR_RETURN(ReportSource source, read_store(store, options, data));
  for (const ReportSweep& sweep : data.sweeps) {
    data.title += (data.title.empty() ? "Results: " : ", ") + sweep.name;
  }
  if (data.title.empty()) data.title = "Results: none";
  add_points(source, data);
  add_fronts(data);
  add_curves(data);
  BUBBLESIM_RETURN_IF_ERROR(add_comparisons(store, options, data));
  return data;
}

}  // namespace bubblesim::report

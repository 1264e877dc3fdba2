#include "sim/advise/trials.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/advise/question.hpp"
#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::advise {
namespace {

// ---- The figures of a results row by the names of their columns (sim/observe/OUTPUTS.md).

constexpr std::string_view kFirstToken = "ttft_p95_ms";
constexpr std::string_view kEachToken = "tpot_p95_ms";

std::optional<std::size_t> column_of(std::string_view name) {
  const auto columns = observe::result_columns();
  const auto found = std::ranges::find(columns, name, &observe::ResultColumn::name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

class RowReader {
 public:
  explicit RowReader(const observe::ResultRow& row) : row_(row) {}
  /// Nothing: not measured, or no such column.
  [[nodiscard]] std::optional<double> number(std::string_view column) const {
    const auto at = column_of(column);
    if (!at) return std::nullopt;
    const observe::Cell& cell = row_.cells[*at];
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    return std::nullopt;
  }
  [[nodiscard]] double number_or_zero(std::string_view column) const {
    return number(column).value_or(0);
  }
  /// Empty: not said, or no such column.
  [[nodiscard]] std::string text(std::string_view column) const {
    const auto at = column_of(column);
    if (!at) return {};
    const auto* text = std::get_if<std::string>(&row_.cells[*at]);
    return text != nullptr ? *text : std::string{};
  }
  /// The latency in a column in milliseconds.
  [[nodiscard]] std::optional<Duration> latency(std::string_view column) const {
    const auto milliseconds = number(column);
    if (!milliseconds) return std::nullopt;
    return Duration{std::llround(*milliseconds * 1e6)};
  }
  [[nodiscard]] TokenLatency token_latency() const {
    return {latency(kFirstToken), latency(kEachToken)};
  }

 private:
  const observe::ResultRow& row_;
};

void worse_of(std::optional<Duration>& latency, std::optional<Duration> other) {
  if (other) latency = std::max(latency.value_or(*other), *other);
}

void add_row(TrialResult& result, const RowReader& row, const OwnFiller& filler) {
  const double rate = row.number_or_zero("filler_requests_per_s");
  const double own = filler.requests_per_s;
  result.requests_per_s += rate;
  result.tokens_per_s +=
      row.number("output_tokens_per_s").value_or(rate * filler.tokens_per_request);
  result.offered_per_s += row.number_or_zero("filler_offered_per_s");
  if (own > 0) result.gain += rate / own;
  result.overloaded = result.overloaded || row.number_or_zero("overloaded") > 0;
  const double refused = row.number_or_zero("requests_refused");
  result.refused = result.refused || (refused > 0 && rate > 0);
  worse_of(result.p95, row.latency("latency_p95_ms"));
  const std::string bound_from = row.text("latency_lower_bound_from");
  result.p95_is_lower_bound = result.p95_is_lower_bound || bound_from == "p50" ||
                              bound_from == "p90" || bound_from == "p95";
  const TokenLatency tokens = row.token_latency();
  worse_of(result.tokens.ttft, tokens.ttft);
  worse_of(result.tokens.tpot, tokens.tpot);
}

void slow_down(Json& config, const std::vector<std::uint32_t>& ranks, double factor) {
  Json& stragglers = config["training"]["stragglers"];
  if (!stragglers.is_array()) stragglers = Json::array();
  std::set<std::uint32_t> slow;
  for (Json& straggler : stragglers) {
    straggler["slowdown"] = straggler["slowdown"].get<double>() * factor;
    slow.insert(straggler["rank"].get<std::uint32_t>());
  }
  for (const std::uint32_t rank : ranks) {
    if (!slow.contains(rank)) stragglers.push_back({{"rank", rank}, {"slowdown", factor}});
  }
}

}  // namespace

Trials::Trials(const Question& question, const policy::Registry& registry,
               sweep::SharedWork& shared, OwnGpu own, TrialOptions options)
    : question_(question), registry_(registry), shared_(shared), own_(std::move(own)),
      options_(std::move(options)),
      base_(std::make_shared<const Json>(Json::parse(question.base, nullptr, false))) {}

Json Trials::config_of(const Trial& trial) const {
  Json config = *base_;
  config["policies"] = Json::array({policy_entry(trial.proposal)});
  for (const char* key : {"iterations", "precision"}) config.erase(key);
  config["duration"] = format_duration(trial.length);
  config["warmup"] = format_duration(trial.warmup);
  config["seed"] = trial.seed;
  for (const auto& [pointer, value] : trial.proposal.places) {
    const auto set = sweep::set_value(config, pointer, Json::parse(value, nullptr, false));
    BUBBLESIM_CHECK(set.has_value(), "a searched place that the base lacks: " + pointer);
  }
  if (trial.slowdown != 1) slow_down(config, own_.ranks, trial.slowdown);
  return config;
}

CheckedResult<store::PlannedRun> Trials::plan(const Trial& trial) {
  const Json config = config_of(trial);
  store::PlannedRun run;
  run.config = compact_text(config);
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string content,
                             sweep::run_content(config, options_.config_folder, files_));
  run.index = planned_++;
  run.seed = trial.seed;
  run.key = sweep::run_key(content, run.seed, options_.execute.version);
  run.point = sweep::point_key(content);
  for (const char* place : {"/policies/0", "/duration", "/warmup"}) {
    run.settings.push_back({place, sweep::text_at(config, place)});
  }
  for (const auto& [pointer, value] : trial.proposal.places) {
    run.settings.push_back({pointer, value});
  }
  if (trial.slowdown != 1) {
    run.settings.push_back({"/training/stragglers",
                            sweep::text_at(config, "/training/stragglers")});
  }
  return run;
}

Result<bool> Trials::look_up(const std::string& key) {
  if (known_.contains(key)) return true;
  if (options_.store == nullptr) return false;
  if (!store_read_) {
    BUBBLESIM_ASSIGN_OR_RETURN(stored_, options_.store->done());
    store_read_ = true;
  }
  if (!stored_.contains(key)) return false;
  store::RowFilter filter;
  filter.key = key;
  BUBBLESIM_RETURN_IF_ERROR(options_.store->each_record(
      filter, [&](const store::RunRecord& record) { known_[key] = result_of(record); }));
  ++found_;
  return known_.contains(key);
}

TrialResult Trials::result_of(const store::RunRecord& record) const {
  TrialResult result;
  result.key = record.run.key;
  result.done = record.status == store::RunStatus::kDone && !record.rows.empty();
  result.reason = record.reason;
  if (!result.done) return result;
  const RowReader first(record.rows.front());
  result.kept = first.number_or_zero("training_normalised_fraction");
  result.events = first.number_or_zero("events");
  const bool other_filler = std::ranges::any_of(record.run.settings, [](const auto& setting) {
    return setting.pointer.starts_with("/fillers");
  });
  if (other_filler) result.events *= 2;
  for (const observe::ResultRow& row : record.rows) {
    const bool known = row.filler < own_.fillers.size();
    add_row(result, RowReader(row), known ? own_.fillers[row.filler] : OwnFiller{});
  }
  return result;
}

Result<void> Trials::simulate(const std::vector<store::PlannedRun>& runs) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<sweep::RecordWriter> writer;
  if (options_.store != nullptr) writer.emplace(*options_.store);
  sweep::SweepPorts ports;
  ports.next = [&]() -> std::optional<store::PlannedRun> {
    const std::size_t index = next++;
    if (index >= runs.size()) return std::nullopt;
    return runs[index];
  };
  const std::atomic<bool>* stop = options_.execute.stop;
  ports.stopped = [stop] { return stop != nullptr && *stop; };
  ports.done = [&](store::RunRecord&& record) {
    // A run that was stopped says nothing of its setting.
    if (record.status != store::RunStatus::kDone && ports.stopped()) return;
    TrialResult result = result_of(record);
    const std::scoped_lock lock(mutex);
    known_[record.run.key] = std::move(result);
    ++simulated_;
    if (writer) writer->add(std::move(record));
  };
  sweep::ExecuteOptions options = options_.execute;
  options.threads = std::min(options.threads, runs.size());
  sweep::execute_runs(registry_, options, ports, shared_);
  return writer ? writer->finish() : Result<void>{};
}

Result<std::vector<TrialResult>> Trials::run(const std::vector<Trial>& trials) {
  std::vector<std::string> keys;
  std::vector<store::PlannedRun> missing;
  std::set<std::string> asked;
  for (const Trial& trial : trials) {
    const auto run = plan(trial);
    if (!run) return tl::make_unexpected(run.error().front());
    keys.push_back(run->key);
    BUBBLESIM_ASSIGN_OR_RETURN(const bool known, look_up(run->key));
    if (!known && asked.insert(run->key).second) missing.push_back(*run);
  }
  if (!missing.empty()) BUBBLESIM_RETURN_IF_ERROR(simulate(missing));
  std::vector<TrialResult> results;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto found = known_.find(keys[i]);
    TrialResult result;
    result.reason = "stopped";
    results.push_back(found == known_.end() ? result : found->second);
    if (options_.told) options_.told(trials[i], results.back());
  }
  return results;
}

}  // namespace bubblesim::advise

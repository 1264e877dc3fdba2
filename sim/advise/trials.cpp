#include "sim/advise/trials.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/advise/question.hpp"
#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::advise {
namespace {

using store::number_in;

/// The latency in a column in milliseconds.
std::optional<Duration> latency_in(const observe::ResultRow& row, std::string_view column) {
  const auto milliseconds = number_in(row, column);
  if (!milliseconds) return std::nullopt;
  return Duration{std::llround(*milliseconds * 1e6)};
}

void worse_of(std::optional<Duration>& latency, std::optional<Duration> other) {
  if (other) latency = std::max(latency.value_or(*other), *other);
}

void add_row(TrialResult& result, const observe::ResultRow& row, const OwnFiller& filler) {
  const double rate = number_in(row, "filler_requests_per_s").value_or(0);
  const double own = filler.requests_per_s;
  result.requests_per_s += rate;
  result.tokens_per_s +=
      number_in(row, "output_tokens_per_s").value_or(rate * filler.tokens_per_request);
  result.offered_per_s += number_in(row, "filler_offered_per_s").value_or(0);
  if (own > 0) result.gain += rate / own;
  result.overloaded = result.overloaded || number_in(row, "overloaded").value_or(0) > 0;
  const double refused = number_in(row, "requests_refused").value_or(0);
  result.refused = result.refused || (refused > 0 && rate > 0);
  worse_of(result.p95, latency_in(row, "latency_p95_ms"));
  const std::string bound_from = store::text_in(row, "latency_lower_bound_from");
  result.p95_is_lower_bound = result.p95_is_lower_bound || bound_from == "p50" ||
                              bound_from == "p90" || bound_from == "p95";
  worse_of(result.tokens.ttft, latency_in(row, "ttft_p95_ms"));
  worse_of(result.tokens.tpot, latency_in(row, "tpot_p95_ms"));
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
               sweep::SharedWork& shared, PartsAlone parts, const AnswerOptions& options)
    : question_(question), registry_(registry), shared_(shared), parts_(std::move(parts)),
      options_(options),
      base_(std::make_shared<const Json>(Json::parse(question.base.text, nullptr, false))) {}

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
  if (trial.slowdown != 1) slow_down(config, parts_.ranks, trial.slowdown);
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
  run.key = sweep::run_key(content, run.seed, options_.version);
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
  const observe::ResultRow& first = record.rows.front();
  result.kept = number_in(first, "training_normalised_fraction").value_or(0);
  result.events = number_in(first, "events").value_or(0);
  const bool other_filler = std::ranges::any_of(record.run.settings, [](const auto& setting) {
    return setting.pointer.starts_with("/fillers");
  });
  if (other_filler) result.events *= 2;
  for (const observe::ResultRow& row : record.rows) {
    const bool known = row.filler < parts_.fillers.size();
    add_row(result, row, known ? parts_.fillers[row.filler] : OwnFiller{});
  }
  return result;
}

Result<void> Trials::simulate(const std::vector<store::PlannedRun>& runs) {
  std::mutex mutex;
  std::optional<sweep::RecordWriter> writer;
  if (options_.store != nullptr) writer.emplace(*options_.store);
  sweep::SweepPorts ports;
  ports.stopped = [stop = options_.stop] { return stop != nullptr && *stop; };
  ports.done = [&](store::RunRecord&& record) {
    // A run that was stopped says nothing of its setting.
    if (record.status != store::RunStatus::kDone && ports.stopped()) return;
    TrialResult result = result_of(record);
    const std::scoped_lock lock(mutex);
    known_[record.run.key] = std::move(result);
    ++simulated_;
    if (writer) writer->add(std::move(record));
  };
  const sweep::ExecuteOptions how{options_.threads, question_.name,
                                  options_.config_folder + "/devices", options_.version,
                                  options_.stop};
  sweep::execute_runs(runs, registry_, how, ports, shared_);
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
    if (options_.tried) options_.tried(trials[i], results.back());
  }
  return results;
}

}  // namespace bubblesim::advise

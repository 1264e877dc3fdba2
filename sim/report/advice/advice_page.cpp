#include "sim/report/advice/advice_page.hpp"

#include <algorithm>
#include <bubblesim_advice_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <bubblesim_fleet_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <optional>
#include <vector>

#include "sim/advise/answer_parts.hpp"
#include "sim/base/json.hpp"
#include "sim/report/page_parts.hpp"
#include "sim/report/report_axes.hpp"
#include "sim/text/escaped_text.hpp"

namespace bubblesim::report {
namespace {

using advise::Advice;
using advise::Tried;

// Shorter trials are wrong by too much to stand for what can be had.
constexpr int kFrontTriedFor = 3;  // a third of the full length

std::vector<Tried> points_of(const Advice& advice) {
  std::vector<Tried> points;
  for (const Tried& tried : advice.found.all) {
    if (tried.result.done) points.push_back(tried);
  }
  return points;
}

Json milliseconds_or_null(const std::optional<Duration>& span) {
  return span ? Json(to_seconds(*span) * 1e3) : Json(nullptr);
}

/// In the order that page/points.js names.
Json point_json(const Advice& advice, const Tried& tried, std::size_t policy) {
  const advise::TrialResult& result = tried.result;
  const double all = advice.alone.gpus_each;
  const bool keeps = advise::violation(result, advice.question.limits) <= 0;
  return Json::array({policy, advise::setting_text(tried.proposal), result.kept, all * result.gain,
                      all * result.requests_per_s, all * result.tokens_per_s,
                      milliseconds_or_null(result.p95), to_seconds(tried.length), keeps,
                      tried.available, result.overloaded, tried.proposal.policy->oracle,
                      advise::policy_entry(tried.proposal)});
}

std::vector<std::size_t> front_of(const Advice& advice, const std::vector<Tried>& points) {
  std::vector<TradePoint> trades;
  for (const Tried& point : points) {
    TradePoint trade;
    const bool real = point.available && !point.result.overloaded && !point.result.refused;
    if (real && point.measured() >= advice.found.measured() / kFrontTriedFor) {
      trade = {point.result.kept, point.result.gain};
    }
    trades.push_back(trade);
  }
  return pareto_front(trades, sweep::Better::kMore, sweep::Better::kMore);
}

Json place_of(const std::vector<Tried>& points, const std::optional<Tried>& wanted) {
  if (!wanted) return nullptr;
  const auto found = std::ranges::find(points, wanted->proposal, &Tried::proposal);
  return found == points.end() ? Json(nullptr) : Json(found - points.begin());
}

Json answer_json(const ShownAdvice& shown) {
  const Advice& advice = *shown.advice;
  const std::vector<Tried> points = points_of(advice);
  std::vector<std::string> policies;
  Json list = Json::array();
  for (const Tried& point : points) {
    const std::string& name = point.proposal.policy->name;
    auto at = std::ranges::find(policies, name);
    if (at == policies.end()) at = policies.insert(policies.end(), name);
    list.push_back(point_json(advice, point, static_cast<std::size_t>(at - policies.begin())));
  }
  Json whole = advise::advice_json(advice, shown.config);
  Json out{{"points", std::move(list)}, {"policies", policies}, {"front", front_of(advice, points)},
           {"recommended", place_of(points, advice.found.best)},
           {"runnerUp", place_of(points, advice.found.runner_up)}};
  for (const char* key : {"name", "limits", "text", "alone", "unfilled", "search"}) {
    out[key] = std::move(whole[key]);
  }
  return out;
}

}  // namespace

std::string advice_page(std::span<const ShownAdvice> answers) {
  Json list = Json::array();
  std::string title = "What to run";
  for (const ShownAdvice& answer : answers) {
    list.push_back(answer_json(answer));
    title += (list.size() > 1 ? ", " : ": ") + answer.advice->question.name;
  }
  return filled_page(advice_page_files::kPage,
                     {{"title", markup_text(title)},
                      {"data", script_json({{"title", title}, {"answers", std::move(list)}})}});
}

std::string fleet_page(const Json& plan) {
  return filled_page(fleet_page_files::kPage, {{"data", script_json(plan)}});
}

}  // namespace bubblesim::report

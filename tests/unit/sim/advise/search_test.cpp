// The search against landscapes whose best point is known: gains, losses and latencies are formulas
// of the parameters.
#include "sim/advise/search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sim/policy/declare.hpp"
#include "tests/fault.hpp"

namespace bubblesim::advise {
namespace {

using namespace std::chrono_literals;
using policy::ParameterSet, policy::PolicySpec;

constexpr const char* kRate = "/fillers/0/arrivals/rate_per_s";

PolicySpec spec_of(const std::string& name, std::vector<policy::ParameterSpec> parameters) {
  PolicySpec spec;
  spec.name = name;
  spec.parameters = std::move(parameters);
  return spec;
}

/// What a policy does with its parameters at a load.
using Formula = std::function<TrialResult(const ParameterSet&, double load, const Trial&)>;

TrialResult gain_and_kept(double gain, double kept) {
  TrialResult result;
  result.gain = gain;
  result.kept = kept;
  return result;
}

Formula constant(double gain, double kept) {
  return [=](const ParameterSet&, double, const Trial&) { return gain_and_kept(gain, kept); };
}

/// In trials longer than so much it keeps something else.
Formula by_length(double gain, double kept, Duration length, double kept_then) {
  return [=](const ParameterSet&, double, const Trial& trial) {
    return gain_and_kept(gain, trial.length > length ? kept_then : kept);
  };
}

struct Landscape {
  struct Constant {
    std::string name;
    double gain, kept;
  };
  policy::Registry registry;
  std::map<std::string, Formula> formulas;
  std::size_t trials = 0;
  std::shared_ptr<std::atomic<bool>> many = std::make_shared<std::atomic<bool>>();

  explicit Landscape(const std::vector<Constant>& policies = {}) {
    for (const auto& [name, gain, kept] : policies) add(name, constant(gain, kept));
  }

  void add(PolicySpec spec, Formula formula) {
    formulas[spec.name] = std::move(formula);
    registry.add(std::move(spec));
  }
  void add(const std::string& name, Formula formula) { add(spec_of(name, {}), std::move(formula)); }

  Result<Found> search(const SearchOptions& options, const SystemChoice& system = {},
                       const std::vector<PlaceRange>& places = {}) {
    return advise::search(Space(registry, system, places), try_all(), options);
  }

  TryAll try_all() {
    return [this](const std::vector<Trial>& wanted) -> Result<std::vector<TrialResult>> {
      std::vector<TrialResult> results;
      for (const Trial& trial : wanted) {
        *many = ++trials > 3;
        const auto place = trial.proposal.places.find(kRate);
        const double load = place == trial.proposal.places.end() ? 0 : std::stod(place->second);
        results.push_back(formulas.at(trial.proposal.policy->name)(parameters_of(trial.proposal),
                                                                   load, trial));
        results.back().done = true;
        results.back().events = to_seconds(trial.length) * 1e4;
      }
      return results;
    };
  }
};

/// `full_trials`: of 10 s each, in the budget.
SearchOptions options_of(Limits limits, double full_trials = 400) {
  SearchOptions options;
  options.limits = limits;
  options.full = {10s, 2s, 100ms, 1};
  options.events = full_trials * 1e5;
  return options;
}

std::string best(const Result<Found>& found) {
  return found && found->best ? found->best->proposal.policy->name : "none";
}

// Of budget b, a filler gains sqrt(b) and training loses b: with keep 0.98 the best b is 0.02.
TEST(search, climbs_to_the_limit_on_training) {
  Landscape land({{"alone", 0, 1}, {"greedy", 0.9, 0.9}, {"modest", 0.1, 0.999}});
  land.add(spec_of("budget", {policy::declare_number("share", 0.001, 0.0001, 0.5, {}),
                              policy::declare_integer("idle", 5, 1, 100, {})}),
           [](const ParameterSet& given, double, const Trial&) {
             const double share = given.number("share");
             return gain_and_kept(std::sqrt(share), 1 - share);
           });
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "budget");
  EXPECT_GE(found->best->result.gain, 0.98 * std::sqrt(0.02));
  EXPECT_GE(found->best->result.kept, 0.98);
  EXPECT_FALSE(found->best->proposal.parameters.contains("idle"));  // moves nothing
  ASSERT_TRUE(found->runner_up);
  EXPECT_EQ(found->runner_up->proposal.policy->name, "modest");
}

// An M/M/1 queue that serves mu a second: p95 = ln(20) / (mu - load), so that with a limit of 50 ms
// the largest load is mu - ln(20) / 0.05. Two parameters make mu 1,000, where each by itself does
// nothing but together; and one that costs training.
TEST(search, finds_the_largest_load_that_keeps_the_latency) {
  Landscape land;
  const auto queue = [](double mu) {
    return [mu](const ParameterSet& given, double load, const Trial&) {
      double served = mu;
      double kept = 1;
      for (const auto& [name, value] : given) {
        if (name == "speed") served *= std::get<double>(value);
        if (name == "speed") kept -= 0.005 * std::get<double>(value);
      }
      TrialResult result = gain_and_kept(std::min(load, served) / 1000, kept);
      result.offered_per_s = load;
      result.requests_per_s = std::min(load, served);
      result.overloaded = load >= served;
      if (load < served) {
        result.p95 = Duration{std::llround(1e9 * std::log(20.0) / (served - load))};
      }
      return result;
    };
  };
  land.add("slow", queue(300));
  land.add(spec_of("fast", {policy::declare_number("speed", 1, 0.1, 10, {})}), queue(250));
  const auto found = land.search(options_of({0.98, 50ms}), {},
                                 {{kRate, {"50", "150", "400", "800"}, std::pair(1.0, 5000.0)}});
  ASSERT_TRUE(found);
  ASSERT_TRUE(found->best);
  // keep 0.98 allows a speed of 4: mu 1,000.
  const double best = 1000 - std::log(20.0) / 0.05;
  EXPECT_EQ(found->best->proposal.policy->name, "fast");
  EXPECT_GE(found->best->result.requests_per_s, 0.9 * best) << proposal_text(found->best->proposal);
  EXPECT_LE(found->best->result.requests_per_s, best);
}

TEST(search, recommends_nothing_that_cannot_be_had_and_says_what_that_would_gain) {
  Landscape land({{"alone", 0, 1}});
  PolicySpec patched = spec_of("patched", {});
  patched.demands = {{policy::SystemFeature::kDriverPatch}};
  land.add(std::move(patched), constant(0.8, 1));
  PolicySpec oracle = spec_of("oracle", {});
  oracle.oracle = true;
  land.add(std::move(oracle), constant(1, 1));
  land.add("plain", constant(0.3, 1));
  SystemChoice system;
  system.cannot = {policy::SystemFeature::kDriverPatch};
  const auto found = land.search(options_of({0.98, {}}), system);
  ASSERT_EQ(best(found), "plain");
  ASSERT_EQ(found->bounds.size(), 1U);
  EXPECT_EQ(found->bounds[0].result.gain, 1);
  ASSERT_EQ(found->out_of_reach.size(), 1U);
  EXPECT_EQ(found->out_of_reach[0].proposal.policy->name, "patched");
}

TEST(search, says_what_is_least_beyond_limits_that_nothing_keeps) {
  Landscape land({{"bad", 0.9, 0.5}, {"less_bad", 0.9, 0.7}});
  const auto found = must(land.search(options_of({0.98, {}})));
  EXPECT_FALSE(found.best);
  ASSERT_TRUE(found.least);
  EXPECT_EQ(found.least->proposal.policy->name, "less_bad");
}

// Half of the seeds lose 3 % of training: a setting that gains less and holds under all is taken.
TEST(search, recommends_what_holds_under_other_seeds) {
  Landscape land({{"steady", 0.4, 0.99}});
  land.add("shaky", [](const ParameterSet&, double, const Trial& trial) {
    return gain_and_kept(0.6, trial.seed % 2 == 1 ? 0.99 : 0.96);
  });
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "steady");
  EXPECT_EQ(found->confirmed.broke, 0U);
  ASSERT_EQ(found->failed.size(), 1U);
  EXPECT_EQ(found->failed[0].confirmed.seeds.size(), kSeedsConfirmed);
}

// What no seed changes is simulated for longer: after 12 s the greedy one loses 3 % of training.
TEST(search, confirms_what_is_not_random_in_longer_windows) {
  Landscape land({{"steady", 0.4, 0.99}});
  land.add("greedy", by_length(0.6, 0.99, 12s, 0.96));
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "steady");
  EXPECT_FALSE(found->confirmed.random);
  EXPECT_EQ(found->confirmed.windows.size(), 3U);
  EXPECT_EQ(break_rate(found->confirmed), 0);
  ASSERT_EQ(found->failed.size(), 1U);
  EXPECT_EQ(found->failed[0].setting.proposal.policy->name, "greedy");
}

// The budget allows trials of 2.7 s, in which the early one keeps 0.99; in 10 s it keeps 0.96.
TEST(search, recommends_what_holds_at_the_length_that_was_asked_for) {
  Landscape land({{"alone", 0, 1}, {"steady", 0.4, 0.99}});
  land.add("early", by_length(0.6, 0.99, 9s, 0.96));
  const auto found = land.search(options_of({0.98, {}}, 20));
  ASSERT_EQ(best(found), "steady");
  EXPECT_EQ(found->best->length, 10s);
  EXPECT_EQ(found->length, 10s);
  EXPECT_LT(found->searched, 3s);
  ASSERT_TRUE(found->runner_up);
  EXPECT_EQ(found->runner_up->length, 10s);
  EXPECT_LT(found->runner_up->result.kept, 0.98);
  ASSERT_EQ(found->looser.size(), 1U);
  EXPECT_EQ(found->looser[0].limit, "keep 0.95");
  EXPECT_EQ(found->looser[0].tried.length, 10s);
}

// A trial measures 5 s at least, half of the 10 s that were asked for: the budget shortens nothing,
// the warm-up of 5 s included. Of w seconds of it the gain is w / 10.
TEST(search, keeps_the_warm_up_of_what_it_cannot_shorten) {
  Landscape land({{"alone", 0, 1}});
  land.add("settling", [](const ParameterSet&, double, const Trial& trial) {
    return gain_and_kept(to_seconds(trial.warmup) / 10, 0.99);
  });
  SearchOptions options = options_of({0.98, {}});
  options.full = {10s, 5s, 5s, 1};
  options.events = 20 * 1e5;
  const auto found = land.search(options);
  ASSERT_TRUE(found && found->best);
  EXPECT_EQ(found->length, 10s);
  EXPECT_EQ(found->searched, 10s);
  EXPECT_EQ(found->warmup, 5s);
  EXPECT_EQ(found->best->result.gain, 0.5);
  EXPECT_FALSE(found->shortened);
  EXPECT_FALSE(found->confirmed.random);
}

// Without a length that was asked for, half of the budget is for 75 searched trials and half for 30
// that confirm: these are 2.5 times as long. Of many questions that share a budget, the searched
// length is confirmed.
TEST(search, confirms_at_the_length_that_the_budget_affords) {
  Landscape land({{"alone", 0, 1}, {"some", 0.5, 1}});
  SearchOptions options = options_of({0.98, {}}, 7.5);
  options.confirmed_at = ConfirmedAt::kAffordedLength;
  const auto found = land.search(options);
  ASSERT_TRUE(found && found->best);
  EXPECT_EQ(found->searched, 500ms);
  EXPECT_EQ(found->length, 1250ms);
  EXPECT_EQ(found->best->length, found->length);
  options.confirmed_at = ConfirmedAt::kSearchedLength;
  const auto shared = land.search(options);
  ASSERT_TRUE(shared && shared->best);
  EXPECT_EQ(shared->length, shared->searched);
  EXPECT_EQ(shared->confirmation_events, shared->confirmed.windows.empty() ? 0 : 4.75 * 1e4);
}

// A looser limit is not told of what keeps it in short trials only.
TEST(search, confirms_what_a_looser_limit_would_gain) {
  Landscape land({{"steady", 0.4, 0.99}});
  land.add("early", by_length(0.6, 0.97, 9s, 0.90));
  const auto found = land.search(options_of({0.98, {}}, 20));
  ASSERT_TRUE(found && found->best);
  EXPECT_TRUE(found->looser.empty());
}

// In trials of a third the bold one breaks the limit; at full length it is the best.
TEST(search, takes_what_is_found_to_be_better_later) {
  Landscape land({{"alone", 0, 1}, {"steady", 0.4, 0.99}});
  land.add("bold", by_length(0.6, 0.96, 9s, 0.99));
  const auto found = land.search(options_of({0.98, {}}, 20));
  ASSERT_EQ(best(found), "bold");
}

TEST(search, confirms_the_best_that_the_next_tool_takes) {
  Landscape land({{"alone", 0, 1}, {"refused", 0.6, 0.99}, {"taken", 0.4, 0.99}});
  SearchOptions options = options_of({0.98, {}});
  options.takes = [](const Proposal& proposal) { return proposal.policy->name != "refused"; };
  const auto found = land.search(options);
  ASSERT_EQ(best(found), "refused");
  ASSERT_TRUE(found->live);
  EXPECT_EQ(found->live->proposal.policy->name, "taken");
}

TEST(search, says_what_is_nearest_where_only_doing_nothing_keeps_the_limits) {
  Landscape land({{"alone", 0, 1}, {"bad", 0.9, 0.5}, {"less_bad", 0.9, 0.7}});
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "alone");
  ASSERT_TRUE(found->least);
  EXPECT_EQ(found->least->proposal.policy->name, "less_bad");
}

// A queue that grows slowly: only at full length is a load above 300 a second overloaded, and only
// under other seeds one above 200.
TEST(search, steps_back_from_loads_that_do_not_hold) {
  Landscape land({{"alone", 0, 1}});
  land.add("queue", [](const ParameterSet&, double load, const Trial& trial) {
    TrialResult result = gain_and_kept(load / 1000, 1);
    result.offered_per_s = result.requests_per_s = load;
    const bool full = trial.length > 9s;
    result.overloaded = (full && load > 300) || (full && trial.seed > 1 && load > 200);
    result.p95 = 1ms;
    return result;
  });
  const auto found = land.search(options_of({0.98, 50ms}), {},
                                 {{kRate, {"100", "400", "800"}, std::pair(1.0, 1200.0)}});
  ASSERT_EQ(best(found), "queue");
  EXPECT_LE(found->best->result.requests_per_s, 200);
  EXPECT_GT(found->best->result.requests_per_s, 50);
  EXPECT_EQ(found->confirmed.broke, 0U);
}

// Of settings that gain as much, the one that leaves training more, then the one that demands less.
TEST(search, prefers_what_costs_less_among_equal_gains) {
  Landscape land;
  PolicySpec demanding = spec_of("demanding", {});
  demanding.demands = {{policy::SystemFeature::kMps}, {policy::SystemFeature::kFrameworkHook}};
  land.add(std::move(demanding), constant(0.8, 0.999));
  land.add("costly", constant(0.803, 0.985));
  land.add("plain", constant(0.8, 0.999));
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "plain");
}

// A policy that gains nothing for its first 3 s, and the most afterwards.
TEST(search, keeps_policies_that_need_time_to_settle) {
  Landscape land;
  for (int i = 0; i < 12; ++i) {
    land.add(spec_of("quick" + std::to_string(i), {}), constant(0.1 + 0.01 * i, 1));
  }
  land.add("late", [](const ParameterSet&, double, const Trial& trial) {
    return gain_and_kept(trial.length > 3s ? 0.7 : 0, 1);
  });
  const auto found = land.search(options_of({0.98, {}}));
  ASSERT_EQ(best(found), "late");
}

TEST(search, spends_no_more_than_its_budget_and_shortens_trials_for_it) {
  Landscape land({{"alone", 0, 1}});
  std::vector<policy::ParameterSpec> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(policy::declare_number("p" + std::to_string(i), 1, 0.001, 1000, {}));
  }
  land.add(spec_of("many", many), [](const ParameterSet& given, double, const Trial&) {
    double gain = 1;
    for (const auto& [name, value] : given) {
      gain -= 0.01 * std::abs(std::log(std::get<double>(value) / 3));
    }
    return gain_and_kept(std::max(0.0, gain), 1);
  });
  for (const double full_trials : {20.0, 100.0, 1000.0}) {
    SearchOptions options = options_of({0.98, {}});
    options.events = full_trials * 1e5;
    const auto found = land.search(options);
    ASSERT_TRUE(found && found->best);
    EXPECT_LE(found->events - found->confirmation_events, 1.1 * options.events) << full_trials;
    EXPECT_LE(found->confirmation_events, 20 * 1e5) << full_trials;
    EXPECT_EQ(found->shortened, full_trials < 75) << full_trials;
  }
}

// A policy that takes 4 s to settle gains before that nothing. Its trials warm up for so long, at
// every step; those of others are as short as the budget has them.
TEST(search, warms_up_each_policy_until_it_has_settled) {
  Landscape land({{"alone", 0, 1}});
  land.add(spec_of("quick", {policy::declare_number("x", 1, 0.001, 1000, {})}),
           constant(0.3, 0.99));
  PolicySpec late = spec_of("late", {});
  late.settling = [](const ParameterSet&, Duration) -> Duration { return 4s; };
  std::vector<Trial> of_late;
  land.add(std::move(late), [&of_late](const ParameterSet&, double, const Trial& trial) {
    of_late.push_back(trial);
    return gain_and_kept(trial.warmup >= 4s ? 0.7 : 0, 0.99);
  });
  SearchOptions options = options_of({0.98, {}});
  options.full = {20s, 10s, 100ms, 1};
  options.confirmed_at = ConfirmedAt::kAffordedLength;
  options.events = 50 * 1e5;
  const auto found = land.search(options);
  ASSERT_EQ(best(found), "late");
  for (const Trial& trial : of_late) EXPECT_EQ(trial.warmup, 4s);
  for (const Tried& tried : found->all) {
    EXPECT_TRUE(tried.proposal.policy->name == "late" || tried.warmup < 4s);
  }
  EXPECT_EQ(found->best->measured(), found->measured());
  options.full.warmup = 3s;  // shorter than it settles: it is not judged, and that is told
  const auto without = land.search(options);
  ASSERT_EQ(best(without), "quick");
  ASSERT_EQ(without->unsettled.size(), 1U);
  EXPECT_EQ(without->unsettled[0].settling, 4s);
}

/// Twelve policies with a parameter each; of the second, gains are most.
Landscape many_policies() {
  Landscape land({{"alone", 0, 1}});
  for (int i = 0; i < 12; ++i) {
    land.add(spec_of("p" + std::to_string(i), {policy::declare_number("x", 1, 0.001, 1000, {})}),
             constant(0.1 + (i == 1 ? 0.5 : 0.01 * i), 0.99));
  }
  return land;
}

// Trials measure 1 s at least. Budgets of 1 to 200 trials of the 10 s that a full one would have:
// none is overrun, and the answer gets as far as that goes.
TEST(search, spends_no_more_than_was_planned_where_no_trial_may_be_short) {
  for (const double full_trials : {1.0, 5.0, 20.0, 60.0, 200.0}) {
    Landscape land = many_policies();
    SearchOptions options = options_of({0.98, {}});
    options.full = {10s, 2s, 1s, 1};
    options.confirmed_at = ConfirmedAt::kAffordedLength;
    options.events = full_trials * 1e5;
    SearchPlan plan;
    options.planned = [&](const SearchPlan& told) {
      plan = told;
      EXPECT_LE(land.trials, 3U);  // one policy's default and its number, far up and down
    };
    const auto found = land.search(options);
    ASSERT_TRUE(found && found->best) << full_trials;
    EXPECT_LE(found->events, options.events) << full_trials;
    EXPECT_EQ(plan.search_events + plan.confirmation_events, options.events);
    EXPECT_EQ(plan.length, found->length);
    for (const Tried& tried : found->all) EXPECT_TRUE(!tried.result.done || tried.length >= 1s);
    if (full_trials >= 20) {
      EXPECT_EQ(found->best->proposal.policy->name, "p1") << full_trials;
      EXPECT_TRUE(found->unafforded.empty()) << full_trials;
      EXPECT_EQ(found->confirmed.windows.size(), 3U) << full_trials;
    }
  }
}

// 8 s of simulated time for defaults of thirteen policies, each measured for 1 s at least after a
// warm-up of a quarter: three trials of 1.25 s say what a second costs, two more end before 6.4 s,
// 80 % of the budget. So three policies are judged.
TEST(search, names_policies_that_the_budget_does_not_reach) {
  Landscape land = many_policies();
  SearchOptions options = options_of({0.98, {}});
  options.full = {10s, 2s, 1s, 1};
  options.confirmed_at = ConfirmedAt::kAffordedLength;
  options.events = 8 * 1e4;
  const auto found = must(land.search(options));
  EXPECT_GT(found.needed_events, options.events);
  EXPECT_LE(found.events, options.events);
  EXPECT_TRUE(found.exhausted);
  ASSERT_EQ(found.unafforded.size(), 10U);
  for (const Unafforded& policy : found.unafforded) EXPECT_GE(policy.events, 1e4);
}

TEST(search, ends_when_it_is_stopped_with_what_it_has) {
  Landscape land({{"alone", 0, 1}, {"some", 0.5, 1}});
  SearchOptions options = options_of({0.98, {}});
  options.stop = land.many.get();
  const auto found = land.search(options);
  ASSERT_EQ(best(found), "some");
}

TEST(break_rate, is_laplaces) {
  Confirmation confirmed;
  confirmed.seeds.resize(5);
  EXPECT_DOUBLE_EQ(break_rate(confirmed), 1.0 / 7);
  confirmed.broke = 2;
  EXPECT_DOUBLE_EQ(break_rate(confirmed), 3.0 / 7);
}

}  // namespace
}  // namespace bubblesim::advise

// Lines of an answer that is made by hand.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "policies/builtin.hpp"
#include "sim/advise/advice.hpp"
#include "sim/advise/answer_parts.hpp"
#include "sim/base/csv_table.hpp"
#include "tests/fault.hpp"

namespace bubblesim::advise {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf, ::testing::HasSubstr;

policy::PolicySpec named(const std::string& name) {
  policy::PolicySpec spec;
  spec.name = name;
  return spec;
}

class AnswerParts : public ::testing::Test {
 protected:
  AnswerParts() {
    advice_.question.name = "night";
    advice_.alone.device = "A100";
    advice_.alone.gpus = 2;
    advice_.alone.gpus_each = 8;
    advice_.found.best = tried(first_, 0.5, 0.99);
    advice_.tools_asked = true;
  }

  static Tried tried(const policy::PolicySpec& spec, double gain, double kept) {
    Tried one;
    one.proposal.policy = &spec;
    one.result.done = true;
    one.result.gain = gain;
    one.result.kept = kept;
    one.result.requests_per_s = 10 * gain;
    return one;
  }

  /// Of all parts, the lines of this word.
  std::string line(const std::string& word) const {
    std::string text;
    for (const AnswerPart& part : answer_parts(advice_, "c.json")) {
      for (const AnswerLine& one : part.lines) {
        if (one.word == word) text += one.text + "\n";
      }
    }
    return text;
  }

  const policy::PolicySpec first_ = named("first");
  const policy::PolicySpec second_ = named("second");
  const policy::PolicySpec seer_ = named("seer");
  Advice advice_;
};

// Each simulated GPU stands for 8: 0.5 is 4 GPUs' worth, 1 % of 16 GPUs 0.16: 25 times as much.
TEST_F(AnswerParts, gains_and_costs_are_of_the_whole_job) {
  EXPECT_THAT(line("gains"), HasSubstr("40 requests/s, worth 4 GPUs"));
  EXPECT_THAT(line("worth"), HasSubstr("25.0 times what training loses (0.16 GPUs)"));
  advice_.found.best->result.tokens_per_s = 100;
  EXPECT_THAT(line("gains"), HasSubstr("800 tokens/s"));
}

// 0.01 is worth 0.08 GPUs, and 2 % of 16 are 0.32.
TEST_F(AnswerParts, says_that_a_setting_costs_more_than_it_gains) {
  advice_.found.best = tried(first_, 0.01, 0.98);
  EXPECT_THAT(line("worth"), AllOf(HasSubstr("less than training loses (0.32 GPUs)"),
                                   HasSubstr("4.0 times as much")));
}

TEST_F(AnswerParts, has_shares_of_the_bounds_and_distances_to_limits) {
  advice_.found.bounds = {tried(seer_, 2, 1)};
  advice_.question.limits = {0.98, 50ms};
  advice_.found.best->result.p95 = 40ms;
  EXPECT_THAT(line("gains"), HasSubstr("25 % of seer's"));
  EXPECT_THAT(line("costs"), HasSubstr("keeps 0.9900, limit 0.98"));
  EXPECT_THAT(line("p95"), HasSubstr("40 ms, limit 50 ms: 20 % of it left"));
}

TEST_F(AnswerParts, says_what_stands_in_the_way) {
  advice_.alone.filler_longest = 3ms;
  advice_.unfilled = {{"collective", 0.2, 0}, {"idle", 0.3, 0.1}};
  advice_.found.out_of_reach = {tried(second_, 0.6, 0.99), tried(seer_, 0.51, 0.99)};
  advice_.found.looser = {{"keep 0.95", tried(second_, 0.7, 0.96)}};
  EXPECT_THAT(line("collective"), HasSubstr("0 % of it filled; under a policy that takes"));
  EXPECT_THAT(line("idle"), HasSubstr("longest operation, 3 ms"));
  EXPECT_THAT(line("system"), AllOf(HasSubstr("second"), Not(HasSubstr("seer"))));
  EXPECT_THAT(line("limit"), HasSubstr("with keep 0.95, second"));
  advice_.refused = {"no room", "no room"};
  advice_.with_memory = tried(first_, 1, 0.99).result;
  EXPECT_THAT(line("memory"), AllOf(HasSubstr("2 of the GPUs do not admit the filler (no room)"),
                                    HasSubstr("worth 8 GPUs")));
}

TEST_F(AnswerParts, prefers_errors_that_were_measured_on_the_device) {
  EXPECT_THAT(line("error"), HasSubstr("never measured"));
  advice_.errors = {{"first", "gv100", "share", 6.7, "t", false}};
  EXPECT_THAT(line("error"), HasSubstr("on other devices only: share 6.7 % (gv100)"));
  advice_.errors.push_back({"first", "a100", "p95", 34, "t", true});
  EXPECT_THAT(line("error"), HasSubstr("under this policy: p95 34 %"));
}

TEST_F(AnswerParts, without_a_best_tells_the_least_violation) {
  advice_.found.best.reset();
  advice_.found.least = tried(second_, 0.4, 0.931);
  advice_.found.least->result.p95 = 60ms;
  advice_.question.limits = {0.98, 60ms};
  EXPECT_THAT(line("nearest"), HasSubstr("5.0 % beyond: second"));
  EXPECT_EQ(line("would need"), "keep 0.9310\n");
  EXPECT_TRUE(practice_of(advice_, "c.json").empty());
}

// Doing nothing keeps every limit: that is no answer to what stands in the way.
TEST_F(AnswerParts, where_only_doing_nothing_keeps_the_limits_the_nearest_is_told_and_analysed) {
  advice_.found.best = tried(first_, 0, 1);
  advice_.found.least = tried(second_, 0.4, 0.931);
  advice_.unfilled = {{"collective", 0.2, 0}};
  const std::vector<AnswerPart> parts = answer_parts(advice_, "c.json");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_THAT(parts[1].title, HasSubstr("Leave it alone: nothing that was tried gains anything"));
  EXPECT_THAT(line("nearest"), HasSubstr("second"));
  EXPECT_EQ(parts[2].title, "In the way, under the nearest setting");
  advice_.found.least.reset();
  EXPECT_EQ(answer_parts(advice_, "c.json").size(), 2U);
}

TEST_F(AnswerParts, says_which_gains_were_dropped) {
  advice_.found.best = tried(first_, 0, 1);
  Failed failed{tried(second_, 0.4, 0.99), {}};
  failed.confirmed.seeds.resize(5);
  failed.confirmed.broke = 2;
  advice_.found.failed = {failed};
  Tried brief = tried(seer_, 0.3, 0.99);
  brief.length = 1s;
  advice_.found.all = {brief};
  advice_.found.length = 10s;
  EXPECT_THAT(answer_parts(advice_, "c.json")[1].title, HasSubstr("did not hold"));
  EXPECT_THAT(line("dropped"), AllOf(HasSubstr("second: "), HasSubstr("2 of 5 other seeds break"),
                                     HasSubstr("seer: "), HasSubstr("in a trial of 1s alone")));
}

// 5 and 7 GPUs beside 4: a mean of 16 / 3.
TEST_F(AnswerParts, gains_are_means_over_seeds_with_their_spread) {
  advice_.found.confirmed.seeds = {tried(first_, 0.625, 0.99).result,
                                   tried(first_, 0.875, 0.98).result};
  EXPECT_THAT(line("gains"), AllOf(HasSubstr("53.33 requests/s, worth 5.33 GPUs"),
                                   HasSubstr("40 to 70 requests/s under 3 seeds")));
}

TEST_F(AnswerParts, says_where_nothing_is_random) {
  Confirmation& confirmed = advice_.found.confirmed;
  confirmed.random = false;
  confirmed.seeds = {advice_.found.best->result, advice_.found.best->result};
  confirmed.windows = {tried(first_, 0.5, 0.987).result};
  EXPECT_THAT(line("sure"), AllOf(HasSubstr("nothing in this run is random; 0 of 1 longer windows"),
                                  HasSubstr("least kept 0.9870"), Not(HasSubstr("expect"))));
}

TEST_F(AnswerParts, marks_durations_that_break_a_limit) {
  advice_.question.limits = {0.98, 50ms};
  Confirmation& confirmed = advice_.found.confirmed;
  confirmed.seeds = {advice_.found.best->result};
  confirmed.slower = {tried(first_, 0.5, 0.97).result};
  confirmed.slower.front().p95 = 60ms;
  confirmed.faster = {tried(first_, 0.5, 0.99).result};
  EXPECT_THAT(line("+5 %"), HasSubstr("; breaks keep, p95"));
  EXPECT_THAT(line("-5 %"), Not(HasSubstr("breaks")));
}

// An oracle that breaks a limit is no bound; one whose search of loads ended lower has no share.
TEST_F(AnswerParts, bounds_keep_the_limits_too) {
  advice_.question.limits = {0.98, 50ms};
  advice_.found.best->result.offered_per_s = 5;
  advice_.found.bounds = {tried(seer_, 0.1, 1), tried(second_, 3, 0.9)};
  EXPECT_THAT(line("bound"), AllOf(HasSubstr("seer"), Not(HasSubstr("second"))));
  EXPECT_THAT(line("gains"), Not(HasSubstr("% of")));
}

TEST_F(AnswerParts, says_that_memory_of_training_is_taken_as_none) {
  advice_.alone.memory_known = false;
  EXPECT_EQ(line("memory"), "");
  advice_.alone.fillers_have_memory = true;
  EXPECT_THAT(line("memory"), HasSubstr("not known and taken as 0"));
}

TEST_F(AnswerParts, says_that_few_iterations_are_measured) {
  advice_.alone.iteration = 3s;
  advice_.found.length = 10s;
  advice_.found.warmup = 2s;
  EXPECT_THAT(line("short"), AllOf(HasSubstr("hold 2.7 iterations"), HasSubstr("one of 26 s")));
  advice_.found.length = 26s;
  EXPECT_EQ(line("short"), "");
}

TEST_F(AnswerParts, says_that_the_search_was_stopped) {
  advice_.stopped = true;
  advice_.found.best->length = 1s;
  EXPECT_THAT(line("sure"), HasSubstr("not confirmed: stopped; the best so far, of a trial of 1s"));
  advice_.found.best.reset();
  EXPECT_THAT(answer_parts(advice_, "c.json")[1].title,
              HasSubstr("Stopped before the search ended"));
  EXPECT_THAT(line("nearest"), HasSubstr("no trial beyond the limits gained anything"));
}

// Two seeds say that nothing is random; the search was stopped before its longer windows.
TEST_F(AnswerParts, tells_of_no_windows_that_were_not_simulated) {
  advice_.stopped = true;
  advice_.found.confirmed.random = false;
  advice_.found.confirmed.seeds.resize(2);
  advice_.found.confirmed.windows.clear();
  EXPECT_THAT(line("sure"), HasSubstr("not confirmed: stopped"));
}

TEST_F(AnswerParts, says_what_a_search_needs_that_its_budget_does_not_reach) {
  EXPECT_EQ(line("budget"), "");
  advice_.question.budget = 1s;
  advice_.found.needed_events = 5 * kEventsPerSecond;
  EXPECT_THAT(line("budget"), HasSubstr("--budget 5s would"));
  advice_.found.unsettled = {{&first_, 3s}};
  EXPECT_THAT(line("settling"), HasSubstr("not judged: first (settles in 3 s); the warm-up is "
                                          "shorter: --warmup 3s would"));
  advice_.found.unsettled.push_back({&second_, 9s});
  EXPECT_THAT(line("settling"), HasSubstr("--warmup 9s would"));
}

// A short trial that gains 0.6 GPUs where the recommendation gains 0.5: told where the budget or a
// stop kept it from being confirmed.
TEST_F(AnswerParts, tells_what_is_better_and_not_confirmed) {
  advice_.found.all = {*advice_.found.best, tried(second_, 0.6, 0.99)};
  advice_.found.length = 10s;
  advice_.found.all.front().length = 10s;
  advice_.found.all.back().length = 2s;
  EXPECT_EQ(line("better"), "");
  advice_.found.exhausted = true;
  EXPECT_THAT(line("better"), AllOf(HasSubstr("second"), HasSubstr("in a trial of 2s alone, which "
                                                                   "is not confirmed")));
}

TEST_F(AnswerParts, practice_is_what_the_tools_take) {
  advice_.found.best->proposal.parameters["share"] = std::int64_t{30};
  advice_.measured_rank = 3;
  auto practice = practice_of(advice_, "c.json");
  ASSERT_EQ(practice.size(), 3U);
  EXPECT_EQ(practice[0].command, "bubblesim run c.json");
  EXPECT_EQ(practice[1].command, "bubblesim measure c.json --rank 3");
  EXPECT_THAT(practice[2].command, HasSubstr("bubblesim fill --policy first --set share=30 --tra"));
  advice_.why_not_measured = "wants MIG";
  advice_.why_not_live = "needs profiles";
  advice_.found.live = tried(second_, 0.25, 0.995);
  practice = practice_of(advice_, "c.json");
  EXPECT_EQ(practice[1].command, "");
  EXPECT_EQ(practice[1].note, "wants MIG");
  EXPECT_THAT(practice[2].command, HasSubstr("--policy second"));
  EXPECT_EQ(practice[2].note, "fill refuses first: needs profiles; the best that it takes keeps "
                              "0.9950 and gains 50 % of it");
}

TEST_F(AnswerParts, a_setting_lost_for_a_reason) {
  const Tried& best = *advice_.found.best;
  Tried slow = tried(second_, 0.6, 0.99);
  slow.result.p95 = 60ms;
  EXPECT_EQ(why_it_lost(slow, best, {0.98, 50ms}), "its p95 is 60 ms");
  EXPECT_EQ(why_it_lost(tried(second_, 0.6, 0.97), best, {0.98, {}}),
            "it keeps 0.9700 of training, 0.0100 below the limit");
  EXPECT_EQ(why_it_lost(tried(second_, 0.6, 0.99), best, {0.98, {}}), "other seeds broke a limit");
  EXPECT_EQ(why_it_lost(tried(second_, 0.4, 0.99), best, {0.98, {}}),
            "it gains 20 % less and keeps 0.9900 of training");
}

const std::string kSourceFolder = BUBBLESIM_SOURCE_DIR;
const std::string kA100 = "NVIDIA A100-SXM4-40GB";

TEST(known_errors, are_the_figures_of_the_page_on_validation) {
  std::ostringstream page;
  page << std::ifstream(kSourceFolder + "/docs/validation.md").rdbuf();
  const auto table = must(CsvTable::read(kSourceFolder + "/configs/validation/errors.csv"));
  ASSERT_GT(table.rows(), 5U);
  const policy::Registry registry = policies::builtin_policies();
  std::string line;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string policy(table.text(row, "policy"));
    EXPECT_TRUE(registry.find(policy)) << policy;
    const std::string percent(table.text(row, "error_percent"));
    EXPECT_NE(page.str().find(percent), std::string::npos) << policy << " " << percent;
  }
}

TEST(known_errors, of_a_policy_that_was_not_measured_are_none) {
  const auto none = must(known_errors(kSourceFolder + "/configs", "specinf", kA100));
  EXPECT_TRUE(none.empty());
  const auto mps = must(known_errors(kSourceFolder + "/configs", "mps", kA100));
  ASSERT_EQ(mps.size(), 3U);
  EXPECT_TRUE(mps.front().same_device);
  const auto elsewhere = known_errors(kSourceFolder + "/configs", "mps", "NVIDIA H100 80GB HBM3");
  ASSERT_TRUE(elsewhere);
  EXPECT_FALSE(elsewhere->front().same_device);
}

}  // namespace
}  // namespace bubblesim::advise

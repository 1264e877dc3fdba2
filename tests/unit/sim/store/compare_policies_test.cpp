#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/store/compare_policies.hpp"
#include "sim/store/merge_stores.hpp"
#include "sim/store/results_store.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

CompareOptions of_metrics(std::vector<std::string> metrics) {
  CompareOptions options;
  options.metrics = std::move(metrics);
  return options;
}

CompareOptions against(std::string baseline) {
  CompareOptions options;
  options.baseline = std::move(baseline);
  return options;
}

CompareOptions by_point() {
  CompareOptions options;
  options.group = ComparisonGroup::kPoint;
  return options;
}

class ComparePolicies : public testing::Test {
 protected:
  /// A run of exclusive and mps with these p95 latencies, at a load and a seed.
  void add(std::uint64_t number, const std::string& load, std::uint64_t seed, double exclusive,
           double mps) {
    RunRecord record = sample_record(number);
    record.run.settings = {{"/fillers/0/load", load}, {"/seed", std::to_string(seed)}};
    record.run.seed = seed;
    set_cell(record, 0, "latency_p95_ms", exclusive);
    set_cell(record, 1, "latency_p95_ms", mps);
    add(record);
  }
  void add(const RunRecord& record) { ASSERT_TRUE(store_->add({&record, 1})); }
  [[nodiscard]] Comparison compare(CompareOptions options = {}) {
    if (options.metrics.empty()) options.metrics = {"latency_p95_ms"};
    return must(compare_policies(*store_, options));
  }

  const TempFolder temp_;
  const std::unique_ptr<ResultsStore> store_ =
      must(open_store(temp_.path("results.db"), StoreAccess::kWrite));
};

TEST(PairedInterval, IsStudentsOfTheDifferences) {
  // Mean 4, deviation 2, t(0.975; 2) = 4.302653: 4.302653 x 2 / sqrt(3) = 4.968276.
  const std::array<double, 3> differences{2, 4, 6};
  EXPECT_NEAR(paired_half_width(differences, 0.95), 4.968276, 1e-5);
  // t(0.995; 2) = 9.924843.
  EXPECT_NEAR(paired_half_width(differences, 0.99), 9.924843 * 2 / std::sqrt(3.0), 1e-5);
}

TEST_F(ComparePolicies, APairOfRunsThatTwoSweepsContainCountsOnce) {
  add(1, "0.1", 1, 10, 14);
  add(2, "0.2", 1, 20, 26);
  const PlannedRun shared = sample_record(1).run;
  ASSERT_TRUE(store_->join("other", {&shared, 1}));
  const Comparison result = compare();
  ASSERT_EQ(result.lines.size(), 1U);
  EXPECT_EQ(result.lines[0].pairs, 2U);
  EXPECT_DOUBLE_EQ(result.lines[0].difference, 5) << "(4 + 6) / 2";
  CompareOptions of_other;
  of_other.filter.sweeps = {"other"};
  ASSERT_EQ(compare(of_other).lines.size(), 1U);
  EXPECT_DOUBLE_EQ(compare(of_other).lines[0].difference, 4);
}

TEST_F(ComparePolicies, PairsByPointAndSeed) {
  // Seeds differ by 100 ms, policies by 2, 4 and 6: unpaired means would see nothing.
  add(1, "0.5", 1, 100, 102);
  add(2, "0.5", 2, 200, 204);
  add(3, "0.5", 3, 300, 306);
  const Comparison result = compare();
  EXPECT_EQ(result.baseline, "exclusive");
  ASSERT_EQ(result.lines.size(), 1U);
  const PolicyComparison& line = result.lines[0];
  EXPECT_EQ(line.policy, "mps");
  EXPECT_EQ(line.filler, "resnet");
  EXPECT_EQ(line.pairs, 3U);
  EXPECT_EQ(line.unpaired, 0U);
  EXPECT_DOUBLE_EQ(line.mean, 204);
  EXPECT_DOUBLE_EQ(line.baseline_mean, 200);
  EXPECT_DOUBLE_EQ(line.difference, 4);
  EXPECT_NEAR(line.half_width.value(), 4.968276, 1e-5);
}

TEST_F(ComparePolicies, ByPointGivesEachPointItsInterval) {
  add(1, "0.5", 1, 10, 11);
  add(2, "0.5", 2, 10, 11);
  add(3, "0.9", 1, 10, 15);
  const Comparison result = compare(by_point());
  ASSERT_EQ(result.lines.size(), 2U);
  EXPECT_EQ(result.lines[0].point, (std::vector<Setting>{{"/fillers/0/load", "0.5"}}));
  EXPECT_DOUBLE_EQ(result.lines[0].half_width.value(), 0) << "no spread, no width";
  EXPECT_DOUBLE_EQ(result.lines[1].difference, 5);
  EXPECT_FALSE(result.lines[1].half_width) << "one pair";
}

TEST_F(ComparePolicies, WhatHasNoPartnerIsCountedAndNotCompared) {
  add(1, "0.5", 1, 10, 11);
  RunRecord alone = sample_record(2);
  alone.rows.erase(alone.rows.begin());  // mps only
  alone.run.seed = 9;
  add(alone);
  const Comparison result = compare();
  ASSERT_EQ(result.lines.size(), 1U);
  EXPECT_EQ(result.lines[0].pairs, 1U);
  EXPECT_EQ(result.lines[0].unpaired, 1U);
}

TEST_F(ComparePolicies, AMetricOfTheRunCountsOnceWhateverTheFillers) {
  RunRecord record = sample_record(1);
  for (std::size_t i = 0; i < 2; ++i) {
    observe::ResultRow second = record.rows[i];
    second.filler = 1;
    second.cells[column_place("filler")] = std::string("bert");
    record.rows.push_back(second);
  }
  add(record);
  EXPECT_EQ(compare(of_metrics({"training_normalised_fraction"})).lines.size(), 1U);
  EXPECT_EQ(compare(of_metrics({"filler_normalised_fraction"})).lines.size(), 2U);
}

TEST_F(ComparePolicies, ParametersTellPoliciesOfOneNameApart) {
  for (std::uint64_t i = 0; i < 2; ++i) {
    RunRecord record = sample_record(i);
    const std::string share = i == 0 ? "25" : "50";
    record.run.settings = {{"/policies/1/parameters/share", share}};
    set_cell(record, 1, "policy_parameters", "mode=fair;share=" + share);
    add(record);
  }
  const Comparison result = compare();
  ASSERT_EQ(result.lines.size(), 2U);
  EXPECT_EQ(result.lines[0].policy, "mps(share=25)");
  EXPECT_EQ(result.lines[1].policy, "mps(share=50)");
  EXPECT_EQ(result.lines[1].pairs, 1U) << "against the baseline of the same point";
  EXPECT_EQ(compare(against("mps(share=50)")).baseline, "mps(share=50)");
}

TEST_F(ComparePolicies, LowerBoundsAndLatenciesOfOverloadedFillersAreCounted) {
  RunRecord record = sample_record(1);
  set_cell(record, 1, "latency_lower_bound_from", std::string("p90"));
  set_cell(record, 1, "overloaded", std::int64_t{1});
  add(record);
  const auto line_of = [this](const char* metric) {
    return compare(of_metrics({metric})).lines[0];
  };
  EXPECT_EQ(line_of("latency_p95_ms").lower_bounds, 1U);
  EXPECT_EQ(line_of("latency_p50_ms").lower_bounds, 0U);
  EXPECT_EQ(line_of("latency_p50_ms").overloaded, 1U);
  EXPECT_EQ(line_of("filler_requests_per_s").overloaded, 0U);
}

TEST_F(ComparePolicies, WhatInputsHaveLostIsThatOfBothRuns) {
  RunRecord record = sample_record(1);
  set_cell(record, 0, "losses", std::string("a"));
  set_cell(record, 1, "losses", std::string("b"));
  add(record);
  EXPECT_THAT(compare().lines[0].losses, testing::ElementsAre("a", "b"));
}

TEST_F(ComparePolicies, UnknownMetricsPoliciesAndConfidencesAreNamed) {
  add(1, "0.5", 1, 10, 11);
  const auto fault = [&](const CompareOptions& options) {
    const auto result = compare_policies(*store_, options);
    return result ? "compared" : result.error().text();
  };
  EXPECT_THAT(fault(of_metrics({"latency_p59_ms"})),
              AllOf(HasSubstr("\"latency_p59_ms\""), HasSubstr("did you mean \"latency_p50_ms\"")));
  EXPECT_THAT(fault(of_metrics({"policy"})), HasSubstr("expected a column of numbers"));
  EXPECT_THAT(fault(against("exclusiv")), HasSubstr("did you mean \"exclusive\"?"));
  CompareOptions percent;
  percent.confidence = 95;
  EXPECT_THAT(fault(percent), HasSubstr("between 0 and 1"));
  CompareOptions empty;
  empty.filter.sweeps = {"nothing"};
  EXPECT_THAT(fault(empty), HasSubstr("no rows to compare"));
}

class MergeStores : public testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const { return temp_.path(name); }
  std::string store(const std::string& name, const std::vector<RunRecord>& records) const {
    EXPECT_TRUE((*open_store(at(name), StoreAccess::kWrite))->add(records));
    return at(name);
  }
  /// All records, in the store's order.
  [[nodiscard]] std::vector<RunRecord> content(const std::string& name) const {
    std::vector<RunRecord> all;
    EXPECT_TRUE((*open_store(at(name), StoreAccess::kRead))
                    ->each_record([&](const RunRecord& record) { all.push_back(record); }));
    return all;
  }
  [[nodiscard]] MergeCount merge(std::vector<std::string> inputs, const std::string& out) const {
    return must(merge_stores(inputs, at(out), nullptr));
  }

  const TempFolder temp_;
};

TEST_F(MergeStores, AnyOrderGivesTheSameContentAndAgainChangesNothing) {
  RunRecord later = sample_record(1);
  later.host = "node2";
  later.finished_unix_ns += 100;
  std::vector<std::string> inputs{
      store("a", {sample_record(0), later, failed_record(2, "early")}),
      store("b", {sample_record(1), sample_record(2), failed_record(3, "bad")}),
      store("c", {sample_record(4), sample_record(1)})};
  const MergeCount first = merge(inputs, "abc");
  EXPECT_EQ(first.runs, 5U);
  EXPECT_EQ(first.stored, 5U);
  const auto expected = content("abc");
  ASSERT_EQ(expected.size(), 5U);
  EXPECT_EQ(expected[1], sample_record(1)) << "the first that finished";
  EXPECT_EQ(expected[2], sample_record(2)) << "done before failed";
  std::reverse(inputs.begin(), inputs.end());
  EXPECT_EQ(merge(inputs, "cba").stored, 5U);
  EXPECT_EQ(content("cba"), expected);
  EXPECT_EQ(merge(inputs, "cba").stored, 0U);
  EXPECT_EQ(content("cba"), expected);
}

TEST_F(MergeStores, ARunBelongsToEverySweepThatItBelongsToInSomeInput) {
  const auto record_of = [](const std::string& sweep, std::uint64_t number, std::uint64_t index) {
    RunRecord record = sample_record(number);
    record.sweep = sweep;
    record.run.index = index;
    return record;
  };
  RunRecord later = record_of("b", 1, 7);
  later.finished_unix_ns += 100;
  std::vector<std::string> inputs{store("one", {sample_record(0), sample_record(1)}),
                                  store("two", {later, record_of("b", 2, 8)}),
                                  store("three", {record_of("c", 2, 0)})};
  const PlannedRun run = record_of("d", 0, 9).run;
  ASSERT_TRUE((*open_store(at("one"), StoreAccess::kWrite))->join("d", {&run, 1}));
  const auto lines = [&](const std::string& name) {
    std::vector<std::string> found;
    const auto opened = open_store(at(name), StoreAccess::kRead);
    std::map<std::string, std::string> stored_by;  // sweeps by key
    EXPECT_TRUE((*opened)->each_record([&](const RunRecord& record) {
      stored_by[record.run.key] = record.sweep;
    }));
    EXPECT_TRUE((*opened)->each_run({}, [&](const RunRecord& record) {
      found.push_back(record.sweep + std::to_string(record.run.index) + " " +
                      record.run.key.back() + " " + stored_by[record.run.key]);
    }));
    return found;
  };
  EXPECT_EQ(merge(inputs, "out").stored, 3U);
  const std::vector<std::string> expected{"b7 1 load", "b8 2 b",    "c0 2 b",
                                          "d9 0 load", "load0 0 load", "load1 1 load"};
  EXPECT_EQ(lines("out"), expected);
  std::reverse(inputs.begin(), inputs.end());
  EXPECT_EQ(merge(inputs, "reversed").stored, 3U);
  EXPECT_EQ(lines("reversed"), expected);
  EXPECT_EQ(merge({at("out")}, "reversed").stored, 0U);
  EXPECT_EQ(lines("reversed"), expected);
}

TEST_F(MergeStores, IntoOneOfTheInputsKeepsWhatItHas) {
  const std::string a = store("a", {sample_record(0)});
  const std::string b = store("b", {sample_record(1)});
  EXPECT_EQ(merge({a, b}, "a").stored, 1U);
  EXPECT_EQ(content("a").size(), 2U);
}

TEST_F(MergeStores, AMissingOrDamagedInputIsNamed) {
  const std::string a = store("a", {sample_record(0)});
  const auto missing = merge_stores({a, at("none")}, at("out"), nullptr);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr(at("none")));
  EXPECT_FALSE(fs::exists(at("out"))) << "nothing is made before all inputs are open";
}

}  // namespace
}  // namespace bubblesim::store

// Faults of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// All faults of a table, one a line.
std::string faults_of(const std::string& csv) {
  const auto read = parse_csv(csv, "t.csv");
  if (!read) return "not read: " + read.error().front().text();
  std::string text;
  for (const Error& fault : check(read->schedule, infer_graph(read->schedule))) {
    text += fault.text() + "\n";
  }
  return text;
}

TEST(Check, ASoundTableHasNoFault) {
  EXPECT_THAT(faults_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), IsEmpty());
  EXPECT_THAT(faults_of("0F0,0I0,0W0\n"), IsEmpty());
}

TEST(Check, WhatIsMissingOrTwiceIsNamed) {
  EXPECT_THAT(faults_of("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n"), HasSubstr("rank 0: lacks 0B1"));
  EXPECT_THAT(faults_of("0F0,0I0\n"), HasSubstr("lacks 0W0"));
  EXPECT_THAT(faults_of("0F0,0F0,0B0\n"),
              HasSubstr("rank 0, action 1: found 0F0 a second time"));
  EXPECT_THAT(faults_of("0F0,0B0,0I0,0W0\n"), HasSubstr("both B and I or W"));
  EXPECT_THAT(faults_of("0F0,0B0,0B1,0F2,0B2\n"), HasSubstr("lacks 0F1"));
}

TEST(Check, AStageOnAnotherRankIsNamed) {
  EXPECT_THAT(faults_of("0F0,1B0\n1F0,0B0\n"),
              AllOf(HasSubstr("rank 0, action 1: found 1B0; stage 1 is on rank 1"),
                    HasSubstr("rank 1, action 1: found 0B0; stage 0 is on rank 0")));
}

// Rank 0 wants the gradient of micro-batch 1 first, rank 1 gives that of 0 first and does the
// forward of 1 only after the backward of 0, for which rank 0's second forward must be done.
TEST(Check, ADeadlockNamesTheRanksThatWaitForEachOther) {
  EXPECT_THAT(faults_of("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
              AllOf(HasSubstr("rank 0, action 1: deadlock: 0B0 waits for 1B/I0 of rank 1"),
                    HasSubstr("rank 1, action 1: deadlock: 1F1 waits for 0F1 of rank 0")));
  EXPECT_THAT(faults_of("0B0,0F0\n"),
              HasSubstr("0B0 waits for 0F0, which is later in the same list"));
}

TEST(Check, ManyFaultsAreCounted) {
  std::string csv = "0F0";
  for (int k = 1; k < 100; ++k) csv += ",0F" + std::to_string(k);
  const std::string text = faults_of(csv + "\n");
  EXPECT_THAT(text, HasSubstr("and 80 faults more"));
}

TEST(Check, HugeNumbersAreRefusedBeforeTablesAreMade) {
  EXPECT_THAT(faults_of("0F1048575,0B0\n"), HasSubstr("expected 1048576 micro-batches"));
}

TEST(Check, ShapesThatDisagreeAreNamed) {
  Schedule schedule = made("1f1b", request(2, 2)).schedule;
  EXPECT_THAT(check(schedule, chain_graph(3, 2)).front().text(), HasSubstr("graph of 3"));
  schedule.rank_of_stage[1] = 5;
  EXPECT_THAT(check(schedule, chain_graph(2, 2)).front().text(), HasSubstr("on rank 5"));
  schedule.ranks = 3;
  EXPECT_THAT(check(schedule, chain_graph(2, 2)).front().text(), HasSubstr("2 ranks"));
}

TEST(Check, TwoDirectionsAreToldFromAChain) {
  for (const char* name : {"dualpipe", "chimera"}) {
    const PlannedSchedule plan = made(name, request(4, 8));
    EXPECT_EQ(infer_graph(plan.schedule), plan.graph) << name;
  }
  for (const char* name : {"dualpipev", "zb-v", "interleaved", "1f1b"}) {
    const PlannedSchedule plan = made(name, request(4, 8));
    EXPECT_EQ(infer_graph(plan.schedule), plan.graph) << name;
  }
}

}  // namespace
}  // namespace bubblesim::pipeline

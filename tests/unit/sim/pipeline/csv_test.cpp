// Tables as CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string fault_of(const std::string& csv) {
  const auto read = parse_csv(csv, "t.csv");
  EXPECT_FALSE(read) << csv;
  std::string text;
  if (read) return text;
  for (const Error& fault : read.error()) text += fault.text() + "\n";
  return text;
}

TEST(Csv, EveryScheduleReadsBack) {
  for (const ScheduleSpec& spec : schedule_specs()) {
    for (const std::uint32_t p : {2U, 4U}) {
      const PlannedSchedule plan = made(spec.name, request(p, 2 * p));
      for (const std::string& text :
           {write_csv(plan.schedule), write_csv_steps(plan.schedule, plan.graph)}) {
        auto read = parse_csv(text, spec.name);
        ASSERT_TRUE(read) << spec.name << read.error().front().text();
        EXPECT_EQ(read->schedule, plan.schedule);
        EXPECT_EQ(read->spelling, CsvSpelling::kCurrent);
      }
    }
  }
}

TEST(Csv, IdleStepsAreEmptyCells) {
  const PlannedSchedule plan = made("1f1b", request(2, 2));
  EXPECT_EQ(write_csv_steps(plan.schedule, plan.graph),
            "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(write_csv(plan.schedule), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Csv, SpacesQuotesAndLineEndsDoNotMatter) {
  const auto read = parse_csv(" 0F0 ,\t\"0B0\"\r\n\r\n", "t.csv");
  ASSERT_TRUE(read);
  EXPECT_EQ(text_of(read->schedule.actions[0]), "0F0 0B0");
  EXPECT_EQ(read->schedule.ranks, 1U);
}

TEST(Csv, TheOldSpellingOfTheInputGradientIsKnownByWOrBw) {
  auto read = parse_csv("0F0,0F1,0B0,0W0,0BW1\n", "t.csv");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->spelling, CsvSpelling::kOld);
  EXPECT_EQ(text_of(read->schedule.actions[0]), "0F0 0F1 0I0 0W0 0B1");
  read = parse_csv("0F0,0B0,0W0\n", "t.csv");
  EXPECT_EQ(text_of(read->schedule.actions[0]), "0F0 0I0 0W0");
  read = parse_csv("0F0,0F1,0I0,0W0,0B1\n", "t.csv");
  EXPECT_EQ(read->spelling, CsvSpelling::kCurrent);
  EXPECT_EQ(text_of(read->schedule.actions[0]), "0F0 0F1 0I0 0W0 0B1");
}

TEST(Csv, WhatIsNoComputeIsCounted) {
  const auto read = parse_csv("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0SEND_F1,0REDUCE_GRAD,0RESHARD\n",
                              "t.csv");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(text_of(read->schedule.actions[0]), "0F0 0B0");
  EXPECT_THAT(read->ignored, ElementsAre(Pair("RECV_B", 1), Pair("REDUCE_GRAD", 1),
                                         Pair("RESHARD", 1), Pair("SEND_F", 2),
                                         Pair("UNSHARD", 1)));
}

TEST(Csv, FaultsNameRowCellAndText) {
  EXPECT_THAT(fault_of("0F0,0X0\n"),
              AllOf(HasSubstr("t.csv: row 1, cell 2: found \"0X0\""), HasSubstr("expected")));
  EXPECT_THAT(fault_of("0F0\n,1G0,1SENDF0\n"),
              AllOf(HasSubstr("row 2, cell 2"), HasSubstr("row 2, cell 3"),
                    HasSubstr("did you mean \"SEND_F\"")));
  EXPECT_THAT(fault_of("F0\n"), HasSubstr("no stage number"));
  EXPECT_THAT(fault_of("0F\n"), HasSubstr("no micro-batch number"));
  EXPECT_THAT(fault_of("0F0x\n"), HasSubstr("nothing may follow"));
  EXPECT_THAT(fault_of("-1F0\n"), HasSubstr("no stage number"));
  EXPECT_THAT(fault_of("99999999999F0\n"), HasSubstr("stage numbers go to 65535"));
  EXPECT_THAT(fault_of("0F1048576\n"), HasSubstr("micro-batch numbers go to 1048575"));
  EXPECT_THAT(fault_of("(0F0;1F0)OVERLAP_F_B\n"), HasSubstr("one forward and one whole backward"));
  EXPECT_THAT(fault_of("(0F0;1B0)OVERLAP\n"), HasSubstr("no pair"));
  EXPECT_THAT(fault_of("(\n"), HasSubstr("no pair"));
  EXPECT_THAT(fault_of(""), HasSubstr("found no row"));
  EXPECT_THAT(fault_of(",,\n"), HasSubstr("found no action"));
  EXPECT_THAT(fault_of("0UNSHARD\n"), HasSubstr("found no action"));
  EXPECT_THAT(fault_of("0F0,2F0\n"), HasSubstr("stage 1 has no forward"));
}

}  // namespace
}  // namespace bubblesim::pipeline

// bubblesim schedule: tables by name or from CSV, and what is refused.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

class ScheduleTest : public AtWorkplace {};

TEST_F(ScheduleTest, PrintsTableBubblesAndClosedForm) {
  const Outcome outcome = succeed(place, "schedule 1f1b --stages 4 --micro-batches 8");
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("rank 3  .  .  .  F0 B0--- F1"),
                    HasSubstr("bubble, makespan       27.27 %"),
                    HasSubstr("(p-1)(F+B) = 9 idle a rank in its makespan; here 9"),
                    HasSubstr("peak activations       4 3 2 1")));
}

TEST_F(ScheduleTest, WhatItWritesItReads) {
  const std::string files = " --csv t/a.csv --plot t/a.svg --json t/a.json";
  EXPECT_EQ(place.bubblesim("schedule dualpipe --stages 4 --micro-batches 8" + files).code, 0);
  EXPECT_THAT(place.read("t/a.svg"), HasSubstr("</svg>"));
  EXPECT_EQ(parse_json(place.read("t/a.json")).value("format", ""), "bubblesim.schedule/1");
  const Outcome again = succeed(place, "schedule --from t/a.csv --csv t/b.csv");
  EXPECT_EQ(place.read("t/a.csv"), place.read("t/b.csv"));
}

TEST_F(ScheduleTest, RefusalsNameThePlaceAndTheNearestPlan) {
  expect_fault(place, "schedule 1f1", HasSubstr("did you mean \"1f1b\"?"));
  expect_fault(place, "schedule interleaved --micro-batches 9", HasSubstr("nearest: 8 or 12"));
  expect_fault(place, "schedule 1f1b --times F=1.5", HasSubstr("WHOLE NUMBER"));
  expect_fault(place, "schedule graph --edges 0-9", HasSubstr("edge 0-9"));
  expect_fault(place, "schedule --from nowhere.csv", HasSubstr("nowhere.csv"));
  expect_fault(place, "schedule 1f1b --from x.csv", HasSubstr("excludes"));
  place.write("dead.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  expect_fault(place, "schedule --from dead.csv",
               AllOf(HasSubstr("dead.csv: rank 0, action 1: deadlock: 0B0 waits for"),
                     HasSubstr("dead.csv: rank 1, action 1: deadlock: 1F1 waits for 0F1")));
}

TEST_F(ScheduleTest, TimesAreGivenOnceAndThoseWithoutEffectAreNoted) {
  expect_fault(place, "schedule 1f1b --times F=1,F=2", HasSubstr("--times: found F twice"));
  const Outcome split = succeed(place, "schedule zb-h1 --times B=5,FB=9");
  EXPECT_THAT(split.out, AllOf(HasSubstr("note: B changes nothing"),
                               HasSubstr("note: FB changes nothing")));
  EXPECT_THAT(place.bubblesim("schedule 1f1b --times B=5").out, testing::Not(HasSubstr("note:")));
}

TEST_F(ScheduleTest, StagesAreAsManyAsItsTableHolds) {
  for (const char* stages : {"-1", "0", "16385"}) {
    expect_fault(place, std::string("schedule 1f1b --stages ") + stages,
                 HasSubstr("not in range 1 to 16384"));
  }
}

}  // namespace
}  // namespace bubblesim::app_test

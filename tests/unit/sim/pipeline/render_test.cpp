// Tables as text, JSON and picture.
#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/render.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::HasSubstr, testing::Not;

TEST(Render, GridHasAColumnAUnit) {
  const PlannedSchedule plan = made("1f1b", request(2, 2));
  EXPECT_EQ(render_grid(plan.schedule, ran(plan, times(10, 10, 10))),
            "rank 0  F0 F1 .  .  B0--- .  B1---\n"
            "rank 1  .  F0 B0--- F1 B1--- .  .\n");
}

TEST(Render, GridNamesStagesWhereARankHasSeveral) {
  const PlannedSchedule plan = made("zb-v", request(1, 1));
  EXPECT_EQ(render_grid(plan.schedule, ran(plan, times(1, 1, 1))),
            "rank 0  0F0 1F0 1I0 1W0 0I0 0W0\n");
}

TEST(Render, AGridTooLongSaysWhereItEnds) {
  const PlannedSchedule plan = made("gpipe", request(1, 1000));
  EXPECT_THAT(render_grid(plan.schedule, ran(plan, times(1, 1, 1))),
              HasSubstr("shown up to time 2000 of 3000"));
}

TEST(Render, AGridOfNoTimeIsEmpty) {
  const PlannedSchedule plan = made("gpipe", request(1, 1));
  EXPECT_EQ(render_grid(plan.schedule, ran(plan, times(0, 0, 0))), "rank 0\n");
}

TEST(Render, JsonHoldsActionsAndBubbles) {
  const PlannedSchedule plan = made("1f1b", request(2, 2));
  const Execution run = ran(plan, times(1, 1, 1));
  const Json json = Json::parse(render_json(plan.schedule, plan.graph, times(1, 1, 1), run));
  EXPECT_EQ(json["format"], "bubblesim.schedule/1");
  EXPECT_EQ(json["makespan"], 9);
  EXPECT_EQ(json["by_rank"][1]["actions"][1]["action"], "1B0");
  EXPECT_EQ(json["by_rank"][1]["actions"][1]["start"], 2);
  EXPECT_EQ(json["bubbles"][0]["kind"], "between");
  EXPECT_EQ(json["stages"][1]["producers"][0], 0);
}

TEST(Render, PictureHasABoxAnActionAndEscapesNames) {
  PlannedSchedule plan = made("dualpipe", request(4, 8));
  plan.schedule.name = "a<b>&\"\x01";
  const std::string picture = render_svg(plan.schedule, ran(plan, times(1, 1, 1)));
  EXPECT_THAT(picture, HasSubstr("<title>a&lt;b&gt;&amp;&quot;\xEF\xBF\xBD</title>"));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
  EXPECT_THAT(picture, HasSubstr("paler"));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
  std::size_t boxes = 0;
  for (std::size_t at = picture.find("fill-opacity"); at != std::string::npos;
       at = picture.find("fill-opacity", at + 1)) {
    ++boxes;
  }
  std::size_t expected = 0;
  for (const auto& list : plan.schedule.actions) {
    for (const Action& action : list) expected += action.kind == ActionKind::kOverlapped ? 2 : 1;
  }
  EXPECT_EQ(boxes, expected);
}

TEST(Render, APictureOfNoTimeIsDrawn) {
  const PlannedSchedule plan = made("gpipe", request(2, 1));
  EXPECT_THAT(render_svg(plan.schedule, ran(plan, times(0, 0, 0))), Not(HasSubstr("nan")));
}

// Tables as CSV.

using testing::AllOf, testing::ElementsAre, testing::Pair;

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
  EXPECT_EQ(write_csv_steps(plan.schedule, plan.graph), "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
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

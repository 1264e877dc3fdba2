// Tables as text, JSON and picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "sim/pipeline/render.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::HasSubstr;
using testing::Not;

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
    for (const Action& action : list) {
      expected += action.kind == ActionKind::kOverlapped ? 2 : 1;
    }
  }
  EXPECT_EQ(boxes, expected);
}

TEST(Render, APictureOfNoTimeIsDrawn) {
  const PlannedSchedule plan = made("gpipe", request(2, 1));
  EXPECT_THAT(render_svg(plan.schedule, ran(plan, times(0, 0, 0))), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace bubblesim::pipeline

// Faults of tables.
#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/render.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/pipeline/plans.hpp"

namespace bubblesim::pipeline {
namespace {

using testing::AllOf, testing::HasSubstr, testing::IsEmpty, testing::Not;

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
  EXPECT_THAT(faults_of("0F0,0F0,0B0\n"), HasSubstr("rank 0, action 1: found 0F0 a second time"));
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
  EXPECT_THAT(faults_of(csv + "\n"), HasSubstr("and 80 faults more"));
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

// Stages as a graph: joins, forks, sizes by stage, and GraphPipe's case study.

PlannedSchedule on(std::uint32_t stages, const std::vector<StageEdge>& edges,
                   const std::vector<std::uint32_t>& sizes, std::uint32_t samples) {
  auto graph = must(make_stage_graph(stages, edges, sizes, samples));
  ScheduleRequest plan = request(stages, samples);
  plan.graph = std::move(graph);
  return made("graph", plan);
}

TEST(Graph, AChainIs1F1B) {
  for (const std::uint32_t p : {1U, 2U, 5U, 8U}) {
    EXPECT_EQ(made("graph", request(p, 12)).schedule.actions,
              made("1f1b", request(p, 12)).schedule.actions);
  }
}

// 0 and 1 feed 2. With F = 1 and 3 the join starts at 3 and both wait for its backward at 6.
TEST(Graph, AJoinWaitsForAllProducers) {
  const PlannedSchedule plan = on(3, {{0, 2}, {1, 2}}, {}, 1);
  UnitTimes unit = times(1, 1, 1);
  unit.by_stage = {{1, 1, 1}, {3, 1, 1}, {1, 1, 1}};
  const Execution run = ran(plan, unit);
  EXPECT_EQ(run.spans[2][0], (Span{3, 4}));
  EXPECT_EQ(run.spans[0][1], (Span{6, 8}));
  EXPECT_EQ(run.spans[1][1], (Span{6, 8}));
}

// 0 feeds 1 and 2; 2's backward ends at 1 + 1 + 6, 1's at 1 + 1 + 2.
TEST(Graph, AForksBackwardWaitsForAllConsumers) {
  const PlannedSchedule plan = on(3, {{0, 1}, {0, 2}}, {}, 1);
  UnitTimes unit = times(1, 1, 1);
  unit.by_stage = {{1, 1, 1}, {1, 1, 1}, {1, 3, 3}};
  EXPECT_EQ(ran(plan, unit).spans[0][1], (Span{8, 10}));
}

// A consumer of twice the micro-batch waits for two of its producer's, which runs 2F2B and
// keeps 4 in flight.
TEST(Graph, AConsumerOfTwiceTheSizeWaitsForTwo) {
  const PlannedSchedule plan = on(2, {{0, 1}}, {1, 2}, 6);
  EXPECT_EQ(text_of(plan.schedule.actions[0]), "0F0 0F1 0F2 0F3 0B0 0B1 0F4 0F5 0B2 0B3 0B4 0B5");
  EXPECT_EQ(text_of(plan.schedule.actions[1]), "1F0 1B0 1F1 1B1 1F2 1B2");
  const Execution run = ran(plan, times(1, 1, 1));
  EXPECT_EQ(run.spans[1][0], (Span{2, 3}));
  EXPECT_EQ(run.spans[0][4], (Span{5, 7}));
  EXPECT_EQ(run.peak_activations, (std::vector<std::int64_t>{4, 2}));
}

TEST(Graph, SizesInAnyOrderRunToTheEnd) {
  for (const std::uint32_t a : {1U, 2U, 4U}) {
    for (const std::uint32_t b : {1U, 2U, 3U}) {
      for (const std::uint32_t c : {1U, 2U, 6U}) {
        const PlannedSchedule plan = on(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, {a, b, c, 1}, 24);
        EXPECT_TRUE(check(plan.schedule, plan.graph).empty());
      }
    }
  }
}

TEST(Graph, DepthIsTheLongestPath) {
  EXPECT_EQ(depth(chain_graph(7, 1)), 7U);
  EXPECT_EQ(depth(*make_stage_graph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}}, {}, 1)), 3U);
}

TEST(Graph, FaultsOfGraphsAreNamed) {
  const auto fault = [](std::uint32_t stages, const std::vector<StageEdge>& edges,
                        const std::vector<std::uint32_t>& sizes, std::uint32_t samples) {
    const auto graph = make_stage_graph(stages, edges, sizes, samples);
    return graph ? std::string() : graph.error().text();
  };
  EXPECT_THAT(fault(2, {{0, 2}}, {}, 1), HasSubstr("edge 0-2"));
  EXPECT_THAT(fault(2, {{1, 1}}, {}, 1), HasSubstr("itself"));
  EXPECT_THAT(fault(2, {{0, 1}, {0, 1}}, {}, 1), HasSubstr("twice"));
  EXPECT_THAT(fault(2, {{0, 1}, {1, 0}}, {}, 1), HasSubstr("cycle"));
  EXPECT_THAT(fault(2, {{0, 1}}, {1}, 1), HasSubstr("1 micro-batch sizes for 2 stages"));
  EXPECT_THAT(fault(2, {{0, 1}}, {2, 3}, 8), HasSubstr("nearest: 6 or 12"));
  EXPECT_THAT(fault(2, {{0, 1}}, {0, 1}, 8), HasSubstr("size 0"));
}

// GraphPipe section 7.5: two branches of four stages on eight devices. One after the other the
// pipeline is 8 deep, side by side 4; with 32 micro-batches 39 slots become 35, a gain of 11 %.
// Half as many micro-batches of twice the size take 19 slots twice as long: with kernels 1.17
// times as efficient on them the whole gain is 20 %. The paper reports about 10 % and 20 %.
TEST(Graph, CaseStudyOfGraphPipe) {
  const std::vector<StageEdge> line = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}};
  const std::vector<StageEdge> branches = {{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 7}};
  const PlannedSchedule deep = on(8, line, {}, 32);
  const PlannedSchedule wide = on(8, branches, {}, 32);
  EXPECT_EQ(depth(deep.graph), 8U);
  EXPECT_EQ(depth(wide.graph), 4U);
  const std::int64_t deep_length = ran(deep, times(100, 100, 100)).makespan;
  const std::int64_t wide_length = ran(wide, times(100, 100, 100)).makespan;
  EXPECT_EQ(deep_length, 39 * 300);
  EXPECT_EQ(wide_length, 35 * 300);
  const PlannedSchedule doubled = on(8, branches, std::vector<std::uint32_t>(8, 2), 32);
  const std::int64_t doubled_length = ran(doubled, times(171, 171, 171)).makespan;
  EXPECT_EQ(doubled_length, 19 * 513);  // 200 / 1.17 = 171 a third
  EXPECT_NEAR(static_cast<double>(deep_length) / static_cast<double>(wide_length), 1.10, 0.02);
  EXPECT_NEAR(static_cast<double>(deep_length) / static_cast<double>(doubled_length), 1.20, 0.01);
  // What is held at a branch's start falls from 8 micro-batches to 4.
  EXPECT_EQ(ran(deep, times(1, 1, 1)).peak_activations.front(), 8);
  EXPECT_EQ(ran(wide, times(1, 1, 1)).peak_activations.front(), 4);
}

// Schedules by name: orders by hand, and plans that do not fit.

TEST(Registry, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_THAT(refusal("1f1", request(4, 8)),
              AllOf(HasSubstr("unknown schedule \"1f1\""), HasSubstr("did you mean \"1f1b\"?"),
                    HasSubstr("chimera")));
}

TEST(Registry, InterleavedNeedsAMultipleOfTheRanks) {
  EXPECT_THAT(refusal("interleaved", request(4, 10)),
              AllOf(HasSubstr("found 10 micro-batches on 4 ranks"),
                    HasSubstr("nearest: 8 or 12 micro-batches, or the same in groups of 5")));
  EXPECT_THAT(refusal("interleaved", request(4, 3)), HasSubstr("nearest: 4 micro-batches"));
  ScheduleRequest small = request(4, 12);
  small.group = 3;
  EXPECT_THAT(refusal("interleaved", small), HasSubstr("nearest: 4"));
}

// 13 on 4 ranks: in groups of 5 the last has 3, in groups of 6 it has 1, of 7 it has 6.
TEST(Registry, InterleavedTakesAnyCountInTheGroupThatTheRefusalNames) {
  EXPECT_THAT(refusal("interleaved", request(4, 13)), HasSubstr("in groups of 7"));
  for (std::uint32_t m = 5; m <= 40; ++m) {
    if (m % 4 == 0) continue;
    const std::string text = refusal("interleaved", request(4, m));
    ScheduleRequest plan = request(4, m);
    plan.group = static_cast<std::uint32_t>(std::stoul(text.substr(text.rfind(' ') + 1)));
    EXPECT_TRUE(make_schedule("interleaved", plan)) << m << " in " << plan.group;
  }
}

TEST(Registry, DualPipeNeedsEvenNumbersAndTwoMicroBatchesARank) {
  EXPECT_THAT(refusal("dualpipe", request(3, 12)), HasSubstr("nearest: 2 or 4"));
  EXPECT_THAT(refusal("dualpipe", request(4, 6)), HasSubstr("nearest: 8"));
  EXPECT_THAT(refusal("dualpipe", request(4, 11)), HasSubstr("nearest: 10 or 12"));
  EXPECT_THAT(refusal("dualpipev", request(4, 7)), HasSubstr("nearest: 8"));
  EXPECT_THAT(refusal("chimera", request(3, 8)), HasSubstr("nearest: 2 or 4"));
  EXPECT_THAT(refusal("chimera", request(4, 5)), HasSubstr("nearest: 4 or 6"));
}

TEST(Registry, OptionsThatAScheduleHasNotAreRefused) {
  EXPECT_THAT(refusal("gpipe", request(4, 8, 2)),
              HasSubstr("nearest: 1 chunks, or interleaved with 2"));
  ScheduleRequest grouped = request(4, 8);
  grouped.group = 4;
  EXPECT_THAT(refusal("1f1b", grouped), HasSubstr("interleaved"));
  ScheduleRequest with_graph = request(4, 8);
  with_graph.graph = chain_graph(4, 8);
  EXPECT_THAT(refusal("1f1b", with_graph), HasSubstr("\"graph\""));
}

TEST(Registry, TablesWithoutEndAreRefused) {
  EXPECT_THAT(refusal("1f1b", request(0, 8)), HasSubstr("nearest: 1"));
  EXPECT_THAT(refusal("1f1b", request(4, 0)), HasSubstr("nearest: 1"));
  EXPECT_THAT(refusal("1f1b", request(4'000'000'000U, 8)), HasSubstr("nearest: 16384"));
  EXPECT_THAT(refusal("1f1b", request(1000, 1'000'000)), HasSubstr("nearest: 5333"));
  EXPECT_THAT(refusal("interleaved", request(16384, 16384, 16384)), HasSubstr("actions"));
}

TEST(Registry, EverySmallPlanThatIsMadeIsSound) {
  for (const ScheduleSpec& spec : schedule_specs()) {
    int count = 0;
    for (std::uint32_t p = 1; p <= 9; ++p) {
      for (std::uint32_t m = 1; m <= 2 * p + 3; ++m) {
        const auto plan = make_schedule(spec.name, request(p, m));
        if (!plan) {
          EXPECT_THAT(plan.error().text(), HasSubstr("nearest")) << spec.name << p << " " << m;
          continue;
        }
        EXPECT_THAT(check(plan->schedule, plan->graph), IsEmpty());
        EXPECT_EQ(plan->schedule.name, spec.name);
        ++count;
      }
    }
    EXPECT_GE(count, 8) << spec.name;
  }
}

// Megatron's figure for p = 2, v = 2, m = 4: rank 0 holds stages 0 and 2.
TEST(Registry, InterleavedByHand) {
  const Schedule schedule = made("interleaved", request(2, 4)).schedule;
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(text_of(schedule.actions[0]),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(text_of(schedule.actions[1]),
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

TEST(Registry, ZeroBubbleH1ByHand) {
  const Schedule schedule = made("zb-h1", request(2, 3)).schedule;
  EXPECT_EQ(text_of(schedule.actions[0]), "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(text_of(schedule.actions[1]), "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
}

// Chimera's figure for 4 stages and 4 micro-batches: 0 and 1 go down, 2 and 3 go up.
TEST(Registry, ChimeraByHand) {
  const PlannedSchedule plan = made("chimera", request(4, 4));
  EXPECT_EQ(text_of(plan.schedule.actions[0]), "0F0 0F1 7F2 7B2 7F3 7B3 0B0 0B1");
  EXPECT_EQ(text_of(plan.schedule.actions[1]), "1F0 6F2 1F1 6F3 6B2 1B0 6B3 1B1");
  EXPECT_EQ(ran(plan, times(2, 1, 1)).makespan, 2 * 10);
}

// Tables as text, JSON and picture.
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

using testing::ElementsAre, testing::Pair;

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
  const auto read = must(parse_csv(" 0F0 ,\t\"0B0\"\r\n\r\n", "t.csv"));
  EXPECT_EQ(text_of(read.schedule.actions[0]), "0F0 0B0");
  EXPECT_EQ(read.schedule.ranks, 1U);
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

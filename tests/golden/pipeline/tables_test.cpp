// Each table of this folder, made again: the same bytes. And read back: the same schedule.
#include <gtest/gtest.h>

#include "sim/base/input_file.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {
namespace {

std::string golden(const std::string& file) {
  return read_text_file(BUBBLESIM_SOURCE_DIR "/tests/golden/pipeline/" + file + ".csv").value();
}

void expect_table(const std::string& file, const std::string& name,
                  const ScheduleRequest& request) {
  const auto plan = make_schedule(name, request);
  ASSERT_TRUE(plan) << plan.error().text();
  const std::string text = golden(file);
  EXPECT_EQ(write_csv_steps(plan->schedule, plan->graph), text) << file;
  const auto read = parse_csv(text, name);
  ASSERT_TRUE(read) << file;
  EXPECT_EQ(read->schedule.actions, plan->schedule.actions) << file;
  EXPECT_TRUE(check(read->schedule, plan->graph).empty()) << file;
}

TEST(PipelineTables, AreTheReviewedOnes) {
  struct Case {
    const char* name;
    std::uint32_t ranks, micro_batches;
  };
  for (const Case& shape :
       {Case{"sequential", 2, 2}, Case{"gpipe", 4, 4}, Case{"1f1b", 4, 6},
        Case{"interleaved", 4, 8}, Case{"zb-h1", 4, 6}, Case{"zb-h2", 3, 6}, Case{"zb-v", 3, 6},
        Case{"dualpipe", 4, 8}, Case{"dualpipev", 2, 5}, Case{"chimera", 4, 8}}) {
    ScheduleRequest request;
    request.ranks = shape.ranks;
    request.micro_batches = shape.micro_batches;
    expect_table(std::string(shape.name) + "_p" + std::to_string(shape.ranks) + "_m" +
                     std::to_string(shape.micro_batches),
                 shape.name, request);
  }
}

TEST(PipelineTables, OfAGraphWithSizesIsTheReviewedOne) {
  ScheduleRequest request;
  request.graph = *make_stage_graph(4, {{0, 2}, {1, 2}, {2, 3}}, {1, 2, 2, 2}, 8);
  expect_table("graph_join_sizes", "graph", request);
}

}  // namespace
}  // namespace bubblesim::pipeline

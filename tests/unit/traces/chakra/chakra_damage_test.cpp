// Graphs that are no graphs and files that are no files: counted losses or clear faults.
#include <gtest/gtest.h>

#include "tests/unit/traces/chakra/et_bytes.hpp"
#include "tests/unit/traces/chakra/imported.hpp"
#include "traces/import/chakra_import.hpp"

namespace bubblesim::traces {
namespace {

using testing::EtNode;
using testing::et_file;
using testing::framed;

EtNode kernel(std::uint64_t id, std::vector<std::uint64_t> data = {}) {
  return {.id = id, .name = "k", .duration = 10, .data = std::move(data),
          .more = testing::attribute("stream", id)};
}

TEST(ChakraDamage, CyclesAreOpenedAtTheEarlierNode) {
  const RankTrace trace = imported(et_file({kernel(1, {2}), kernel(2, {1}), kernel(3, {3})}));
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(trace.counters.count("chakra_cyclic_dependencies_dropped"), 2U);
  ASSERT_EQ(trace.edges.size(), 1U);  // 1 to 2; the way back is dropped
}

TEST(ChakraDamage, MissingParentsAndSecondNodesOfAnIdAreCounted) {
  const RankTrace trace = imported(et_file({kernel(1, {77}), kernel(1), kernel(2)}));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.counters.count("chakra_dependencies_missing"), 1U);
  EXPECT_EQ(trace.counters.count("chakra_duplicate_ids_dropped"), 1U);
}

TEST(ChakraDamage, ACutFileKeepsWhatIsWhole) {
  const std::string whole = et_file({kernel(1), kernel(2), kernel(3)});
  for (std::size_t cut = 1; cut < 20; ++cut) {
    const RankTrace trace = imported(whole.substr(0, whole.size() - cut));
    EXPECT_EQ(trace.device_ops.size(), 2U);
    EXPECT_EQ(trace.counters.count("chakra_truncated"), 1U);
  }
}

TEST(ChakraDamage, ANodeThatCannotBeReadIsPassedOver) {
  const std::string broken = framed("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  const RankTrace trace =
      imported(et_file({kernel(1)}) + broken + framed(testing::node_message(kernel(2))));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.counters.count("chakra_damaged_nodes_dropped"), 1U);
}

TEST(ChakraDamage, AnImpossibleLengthEndsTheReading) {
  const RankTrace trace = imported(et_file({kernel(1)}) + std::string(9, '\xff') + "\x01" + "x");
  EXPECT_EQ(trace.device_ops.size(), 1U);
  EXPECT_EQ(trace.counters.count("chakra_stream_broken"), 1U);
}

TEST(ChakraDamage, TimesBeyondTheClockAreDroppedAndDoNotOverflow) {
  EtNode endless = kernel(2);
  endless.duration = ~std::uint64_t{0};
  const RankTrace trace = imported(et_file({kernel(1), endless}));
  EXPECT_EQ(trace.counters.count("chakra_nodes_beyond_time_dropped"), 1U);
  EtNode long_one = kernel(3);
  long_one.duration = (std::uint64_t{1} << 61U) / 1000 - 1;
  EtNode after = long_one;
  after.id = 4;
  after.data = {3};
  EXPECT_FALSE(import_chakra_bytes(et_file({long_one, after}), "job.0.et"));
}

TEST(ChakraDamage, AStallOfAnUnknownNodeTypeIsNoStall) {
  const std::string ours = testing::framed(testing::bytes_field(
      2, testing::bytes_field(1, "bubblesim_chakra") + testing::number_field(13, 1)));
  EtNode stall{.id = 2, .name = "stall", .type = 0,
               .more = testing::text_attribute("bubblesim_kind", "stall") +
                       testing::attribute("bubblesim_start_ns", 5)};
  const RankTrace trace = imported(ours + framed(testing::node_message(kernel(1))) +
                                   framed(testing::node_message(stall)));
  EXPECT_TRUE(trace.stalls.empty());
  EXPECT_EQ(trace.counters.count("chakra_nodes_of_unknown_type"), 1U);
}

TEST(ChakraDamage, NamesThatAreNotUtf8AreRepaired) {
  EtNode node = kernel(1);
  node.name = "gemm\xff";
  const RankTrace trace = imported(et_file({node}));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "gemm\xef\xbf\xbd");
  EXPECT_EQ(trace.counters.count("chakra_names_not_utf8"), 1U);
}

TEST(ChakraDamage, DependenciesAgainstRecordedTimeGiveNoEdge) {
  EtNode late = kernel(1);
  late.start = 500;
  EtNode early = kernel(2, {1});
  early.start = 100;
  const RankTrace trace = imported(et_file({late, early}));
  EXPECT_TRUE(trace.edges.empty());
  EXPECT_EQ(trace.counters.count("chakra_dependencies_against_time_dropped"), 1U);
}

TEST(ChakraDamage, JsonThatEndsEarlyKeepsItsNodes) {
  const std::string text =
      R"({"workload_graph": [{"Id": 1, "Name": "k", "NodeType": 4, "runtime": 5, "data_deps": [],
      "is_cpu_op": false}, {"Id": 2, "Na)";
  const RankTrace trace = imported(text);
  EXPECT_EQ(trace.device_ops.size(), 1U);
  EXPECT_EQ(trace.counters.count("chakra_truncated"), 1U);
}

}  // namespace
}  // namespace bubblesim::traces

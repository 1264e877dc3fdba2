// Jobs without starts: all ranks are laid out together, and wait for each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/unit/traces/chakra/chakra_jobs.hpp"
#include "traces/align.hpp"
#include "traces/import/chakra/chakra_import.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

using testing::attribute, testing::EtNode, testing::text_attribute;

JobTrace laid_out(const std::vector<std::vector<EtNode>>& ranks) {
  const auto paths = testing::write_job(::testing::TempDir(), "layout", ranks);
  auto job = import_chakra(paths);
  EXPECT_TRUE(job) << job.error().text();
  return job ? std::move(*job) : JobTrace{};
}

std::int64_t end_us(const RankTrace& rank) {
  TraceTime end{};
  for (const DeviceOp& op : rank.device_ops) end = std::max(end, op.end());
  return to_ns(end) / 1000;
}

std::int64_t end_us(const JobTrace& job) {
  std::int64_t end = 0;
  for (const RankTrace& rank : job.ranks) end = std::max(end, end_us(rank));
  return end;
}

std::uint64_t count(const JobTrace& job, std::string_view name) {
  std::uint64_t sum = 0;
  for (const RankTrace& rank : job.ranks) sum += rank.counters.count(name);
  return sum;
}

TEST(ChakraLayout, ranks_wait_in_collectives_for_the_slowest) {
  const JobTrace job = laid_out(testing::data_parallel(64, 8));
  for (const RankTrace& rank : job.ranks) EXPECT_EQ(end_us(rank), 8 * (109 + 50));
  EXPECT_EQ(count(job, "chakra_collectives_not_joined"), 0U);
}

// Two ranks, kernels of 100 and 50 us, then what `more` says of a collective of 4096 bytes.
std::vector<std::vector<EtNode>> of_sizes_alone(const std::string& more) {
  const auto rank = [&more](std::uint64_t us) -> std::vector<EtNode> {
    return {{.id = 0, .name = "gemm", .type = testing::kComp, .duration = us},
            {.id = 1, .name = "all_reduce", .type = testing::kColl, .data = {0},
             .more = attribute("comm_size", 4096) + more},
            {.id = 2, .name = "gemm", .type = testing::kComp, .duration = 10, .data = {1}}};
  };
  return {rank(100), rank(50)};
}

JobTrace timed(const std::vector<std::vector<EtNode>>& ranks, const CollectiveTimes& times) {
  ImportOptions options;
  options.collective_times = times;
  auto job = import_chakra(testing::write_job(::testing::TempDir(), "timed", ranks), options);
  EXPECT_TRUE(job) << job.error().text();
  return job ? std::move(*job) : JobTrace{};
}

const CollectiveTimes kTwentyUs = [](const UntimedCollective&) -> Result<Duration> {
  return Duration{20'000};
};

TEST(ChakraLayout, collectives_without_times_cost_nothing_and_are_a_loss) {
  const JobTrace job = laid_out(of_sizes_alone(attribute("comm_type", 0)));
  for (const RankTrace& rank : job.ranks) {
    EXPECT_EQ(end_us(rank), 100 + 0 + 10);
    for (const auto& [name, entry] : rank.counters) {
      if (name == "collectives_without_time") { EXPECT_EQ(entry.severity, Severity::kLoss); }
    }
  }
  EXPECT_EQ(count(job, "collectives_without_time"), 2U);
}

TEST(ChakraLayout, collectives_without_times_last_what_a_network_says) {
  std::vector<UntimedCollective> asked;
  std::vector<std::uint32_t> members;
  const JobTrace job =
      timed(of_sizes_alone(attribute("comm_type", 0)),
            [&](const UntimedCollective& untimed) -> Result<Duration> {
              asked.push_back(untimed);
              members.assign(untimed.ranks.begin(), untimed.ranks.end());
              return Duration{20'000};
            });
  for (const RankTrace& rank : job.ranks) EXPECT_EQ(end_us(rank), 100 + 20 + 10);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(asked[0].bytes, 4096U);
  EXPECT_EQ(asked[0].world, 2U);
  EXPECT_EQ(members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(count(job, "collectives_simulated"), 2U);
  EXPECT_EQ(count(job, "collectives_without_time"), 0U);
}

TEST(ChakraLayout, collectives_whose_ranks_are_not_known_keep_no_time) {
  // "involved_dim": true, false; field 28 is bool_list.
  const std::string one_dimension = testing::bytes_field(
      10, testing::bytes_field(1, "involved_dim") +
              testing::bytes_field(28, testing::bytes_field(1, std::string("\1\0", 2))));
  const JobTrace job = timed(of_sizes_alone(attribute("comm_type", 0) + one_dimension), kTwentyUs);
  EXPECT_EQ(count(job, "collectives_without_time"), 2U);
}

// Rank 0 sends for 20 us after 100 us; rank 1 receives from then on.
TEST(ChakraLayout, sends_without_times_go_from_one_rank_to_the_other) {
  std::vector<std::uint32_t> members;
  const std::string size = attribute("comm_size", 4096);
  const JobTrace job = timed(
      {{{.id = 0, .name = "gemm", .type = testing::kComp, .duration = 100},
        {.id = 1, .name = "send", .type = testing::kSend, .data = {0},
         .more = size + attribute("comm_dst", 1)}},
       {{.id = 1, .name = "recv", .type = testing::kRecv,
         .more = size + attribute("comm_src", 0)},
        {.id = 2, .name = "gemm", .type = testing::kComp, .duration = 10, .data = {1}}}},
      [&](const UntimedCollective& untimed) -> Result<Duration> {
        members.assign(untimed.ranks.begin(), untimed.ranks.end());
        return Duration{20'000};
      });
  EXPECT_EQ(members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(end_us(job.ranks[0]), 120);
  EXPECT_EQ(end_us(job.ranks[1]), 130);
}

TEST(ChakraLayout, a_group_that_is_used_and_not_declared_has_the_ranks_that_use_it) {
  std::vector<std::uint32_t> members;
  auto ranks = of_sizes_alone(attribute("comm_type", 0) + text_attribute("pg_name", "7"));
  ranks.insert(ranks.begin(), {{.id = 0, .name = "gemm", .type = testing::kComp, .duration = 5}});
  static_cast<void>(timed(ranks, [&](const UntimedCollective& untimed) -> Result<Duration> {
    members.assign(untimed.ranks.begin(), untimed.ranks.end());
    return Duration{20'000};
  }));
  EXPECT_EQ(members, (std::vector<std::uint32_t>{1, 2}));
}

TEST(ChakraLayout, a_pipeline_takes_its_closed_form) {
  EXPECT_EQ(end_us(laid_out(testing::pipeline(8, 16))), (16 + 7) * 30 + 2 * 7 * 3);
  EXPECT_EQ(end_us(laid_out(testing::pipeline(4, 1))), 4 * 30 + 2 * 3 * 3);
}

TEST(ChakraLayout, the_order_of_nodes_in_a_file_changes_nothing) {
  auto ranks = testing::pipeline(4, 8);
  const std::int64_t expected = end_us(laid_out(ranks));
  for (auto& nodes : ranks) std::reverse(nodes.begin(), nodes.end());
  EXPECT_EQ(end_us(laid_out(ranks)), expected);
}

TEST(ChakraLayout, a_free_stream_takes_the_ready_node_of_the_least_id) {
  // Node 5 becomes ready first, while node 1 runs; then 3 does: of both, 3 goes next.
  const JobTrace job = laid_out({{
      {.id = 1, .name = "a", .duration = 100},
      {.id = 2, .name = "b", .duration = 60, .more = attribute("stream", 8)},
      {.id = 3, .name = "c", .duration = 10, .data = {2}},
      {.id = 5, .name = "d", .duration = 10},
  }});
  const RankTrace& rank = job.ranks[0];
  ASSERT_EQ(rank.device_ops.size(), 4U);
  EXPECT_EQ(rank.names[rank.device_ops[2].name], "c");
  EXPECT_EQ(to_ns(rank.device_ops[2].start), 100'000);
  EXPECT_EQ(rank.names[rank.device_ops[3].name], "d");
}

TEST(ChakraLayout, ranks_that_send_to_each_other_and_then_receive_do_not_wait_in_a_circle) {
  // Sends and receives take no time: each rank computes for 7 us, once a step.
  EXPECT_EQ(end_us(laid_out(testing::ring(2, 1)).ranks[0]), 7);
  EXPECT_EQ(end_us(laid_out(testing::ring(2, 1)).ranks[1]), 7);
  const JobTrace job = laid_out(testing::ring(3, 4));
  for (const RankTrace& rank : job.ranks) EXPECT_EQ(end_us(rank), 4 * 7);
  EXPECT_EQ(count(job, "chakra_collectives_not_joined"), 0U);
}

TEST(ChakraLayout, a_receive_waits_for_its_send_and_no_send_for_its_receive) {
  // Rank 0 sends at 0 and at 50; rank 1 is ready to receive at 20 and, behind that, at 22.
  const std::string to_1 = attribute("comm_dst", 1);
  const std::string from_0 = attribute("comm_src", 0);
  const JobTrace job = laid_out({
      {{.id = 1, .name = "send", .type = testing::kSend, .duration = 3, .more = to_1},
       {.id = 2, .name = "gemm", .duration = 50},
       {.id = 3, .name = "send", .type = testing::kSend, .duration = 3, .data = {2}, .more = to_1}},
      {{.id = 1, .name = "gemm", .duration = 20},
       {.id = 2, .name = "recv", .type = testing::kRecv, .duration = 2, .data = {1},
        .more = from_0},
       {.id = 3, .name = "recv", .type = testing::kRecv, .duration = 2, .data = {2},
        .more = from_0}},
  });
  const auto span_us = [&job](std::size_t rank, std::size_t op) {
    const DeviceOp& of = job.ranks[rank].device_ops[op];
    return std::pair(to_ns(of.start) / 1000, to_ns(of.end()) / 1000);
  };
  // In order of start; of rank 0's first two, which start together, the send comes first.
  EXPECT_EQ(span_us(0, 0), std::pair(std::int64_t{0}, std::int64_t{3}));
  EXPECT_EQ(span_us(0, 2), std::pair(std::int64_t{50}, std::int64_t{53}));
  EXPECT_EQ(span_us(1, 1), std::pair(std::int64_t{20}, std::int64_t{22}));
  EXPECT_EQ(span_us(1, 2), std::pair(std::int64_t{22}, std::int64_t{52}));
}

TEST(ChakraLayout, what_nobody_else_has_is_a_loss) {
  // Rank 1 lacks the second all-reduce.
  auto ranks = testing::data_parallel(2, 2);
  ranks[1].pop_back();
  const JobTrace job = laid_out(ranks);
  EXPECT_EQ(count(job, "chakra_collectives_not_joined"), 1U);
  const auto& counters = job.ranks[0].counters;
  for (const auto& [name, entry] : counters) {
    if (name != "chakra_collectives_not_joined") continue;
    EXPECT_EQ(entry.severity, Severity::kLoss);
  }
}

TEST(ChakraLayout, collectives_that_wait_in_a_circle_go_on_and_are_a_loss) {
  // On one stream, rank 0 reduces in group a, then b; rank 1 in b, then a.
  const auto in_group = [](std::uint64_t id, const char* group) {
    return EtNode{.id = id, .name = "all_reduce", .type = testing::kColl, .duration = 10,
                  .more = attribute("comm_type", 0) + attribute("stream", 9) +
                          text_attribute("pg_name", group)};
  };
  const JobTrace job = laid_out({{in_group(1, "a"), in_group(2, "b")},
                                 {in_group(1, "b"), in_group(2, "a")}});
  EXPECT_GT(count(job, "chakra_collectives_not_joined"), 0U);
  for (const RankTrace& rank : job.ranks) EXPECT_EQ(rank.device_ops.size(), 2U);
}

TEST(ChakraLayout, an_inferred_layout_says_so_and_is_not_aligned) {
  JobTrace job = laid_out(testing::pipeline(4, 2));
  for (const RankTrace& rank : job.ranks) EXPECT_TRUE(has_inferred_layout(rank));
  const std::int64_t expected = end_us(job);
  EXPECT_EQ(align_ranks(job).matched, 0U);
  EXPECT_EQ(end_us(job), expected);
}

TEST(ChakraLayout, recorded_starts_are_no_inferred_layout) {
  const JobTrace job = laid_out({{{.id = 1, .name = "a", .duration = 50, .start = 1000}}});
  EXPECT_FALSE(has_inferred_layout(job.ranks[0]));
}

}  // namespace
}  // namespace bubblesim::traces

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "sim/base/packed_file.hpp"
#include "tests/unit/traces/chakra/chakra_jobs.hpp"
#include "tests/unit/traces/import/btr_bytes.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "tests/unit/traces/import/white_space.hpp"
#include "traces/import/chakra/chakra_import.hpp"

namespace bubblesim::traces {
namespace {

RankTrace imported(const std::string& bytes) {
  auto trace = import_chakra_bytes(bytes, "job.0.et");
  EXPECT_TRUE(trace) << trace.error().text();
  if (!trace) return {};
  EXPECT_EQ(broken_promise(*trace), "");
  return std::move(*trace);
}

// What the nodes of a Chakra graph become.

using testing::EtNode, testing::attribute, testing::et_file, testing::text_attribute;
using ::testing::HasSubstr;

std::string fault_of(const std::string& bytes) {
  const auto trace = import_chakra_bytes(bytes, "job.0.et");
  return trace ? "no fault" : trace.error().message;
}

std::int64_t start_us(const DeviceOp& op) { return to_ns(op.start) / 1000; }

TEST(ChakraImport, AHostNodeLaunchesTheDeviceNodeThatDependsOnIt) {
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "aten::mm", .cpu = true, .duration = 10},
      {.id = 2, .name = "gemm", .duration = 100, .data = {1}, .more = attribute("stream", 7)},
  }));
  ASSERT_EQ(trace.device_ops.size(), 1U);
  ASSERT_EQ(trace.host_calls.size(), 1U);
  EXPECT_EQ(trace.device_ops[0].launch, 0U);
  EXPECT_EQ(trace.host_calls[0].kind, HostCallKind::kLaunchKernel);
  EXPECT_EQ(trace.streams[trace.device_ops[0].stream.index()].system_id, 7U);
  EXPECT_EQ(start_us(trace.device_ops[0]), 10);
  EXPECT_EQ(to_ns(trace.device_ops[0].duration), 100'000);
}

TEST(ChakraImport, NodesWithoutStartsFollowDependenciesAndTheirStream) {
  // a: 0 to 50 on stream 7. b follows a: 50 to 80 on stream 9. c depends on nothing, but waits
  // for its stream 7: 50 to 60.
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "a", .duration = 50, .more = attribute("stream", 7)},
      {.id = 2, .name = "b", .duration = 30, .data = {1}, .more = attribute("stream", 9)},
      {.id = 3, .name = "c", .duration = 10, .more = attribute("stream", 7)},
  }));
  ASSERT_EQ(trace.device_ops.size(), 3U);
  EXPECT_EQ(start_us(trace.device_ops[0]), 0);
  EXPECT_EQ(start_us(trace.device_ops[1]), 50);
  EXPECT_EQ(start_us(trace.device_ops[2]), 50);
  EXPECT_EQ(trace.counters.count("chakra_starts_inferred"), 3U);
  ASSERT_EQ(trace.edges.size(), 1U);  // a to b; within a stream no edge is needed
}

TEST(ChakraImport, RecordedStartsAreKept) {
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "a", .duration = 50, .start = 1000, .more = attribute("stream", 7)},
      {.id = 2, .name = "b", .duration = 30, .start = 1200, .more = attribute("stream", 7)},
  }));
  EXPECT_EQ(start_us(trace.device_ops[1]), 1200);
  EXPECT_EQ(trace.counters.count("chakra_starts_inferred"), 0U);
}

TEST(ChakraImport, AHostNodeThatDependsOnADeviceNodeWaitsForItsStream) {
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "launch", .cpu = true, .duration = 10},
      {.id = 2, .name = "gemm", .duration = 100, .data = {1}, .more = attribute("stream", 7)},
      {.id = 3, .name = "aten::item", .cpu = true, .duration = 5, .data = {1, 2}},
  }));
  ASSERT_EQ(trace.host_calls.size(), 3U);
  EXPECT_EQ(trace.host_calls[1].kind, HostCallKind::kStreamSync);
  EXPECT_EQ(trace.host_calls[1].stream, trace.device_ops[0].stream.value);
  EXPECT_EQ(to_ns(trace.host_calls[2].start), 110'000);
}

TEST(ChakraImport, CollectivesHaveTypeSizeGroupAndNumber) {
  const std::string group = testing::bytes_field(
      8, testing::bytes_field(
             1, "['[{\"pg_name\": \"2\", \"ranks\": [0, 4], \"group_size\": 2}]']"));
  const std::string all_gather = attribute("comm_type", 2) + attribute("comm_size", 4096) +
                                 text_attribute("pg_name", "2") + attribute("stream", 20);
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "## process_group:init ##", .type = 1, .cpu = true, .more = group},
      {.id = 2, .name = "ncclDevKernel_AllGather", .type = 7, .duration = 9, .more = all_gather},
      {.id = 3, .name = "ncclDevKernel_AllGather", .type = 7, .duration = 9, .more = all_gather},
  }));
  ASSERT_EQ(trace.collectives.size(), 2U);
  const Collective& second = trace.collectives[1];
  EXPECT_EQ(second.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(second.bytes, 4096U);
  EXPECT_EQ(trace.names[second.group], "2");
  EXPECT_EQ(second.peers, (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(second.sequence, 1U);
}

TEST(ChakraImport, MemoryNodesAreCopies) {
  const RankTrace trace = imported(et_file({
      {.id = 1, .name = "load", .type = 2, .duration = 5, .more = attribute("tensor_size", 64)},
      {.id = 2, .name = "store", .type = 3, .duration = 5, .data = {1}},
  }));
  EXPECT_EQ(trace.device_ops[0].direction, CopyDirection::kHostToDevice);
  EXPECT_EQ(trace.device_ops[0].bytes, 64U);
  EXPECT_EQ(trace.device_ops[1].direction, CopyDirection::kDeviceToHost);
}

TEST(ChakraImport, WorkloadsWithoutTimesAreRefused) {
  EXPECT_THAT(fault_of(et_file({{.id = 1, .name = "gemm"}})), HasSubstr("none with a duration"));
  EXPECT_THAT(fault_of(et_file({{.id = 1, .name = "op", .cpu = true, .duration = 5}})),
              HasSubstr("none of them on a device"));
  EXPECT_THAT(fault_of(""), HasSubstr("is empty"));
  EXPECT_THAT(fault_of("{\"traceEvents\": []}"), HasSubstr("expected a Chakra"));
}

TEST(ChakraImport, BothJsonFormsAreRead) {
  const RankTrace feeder = imported(
      R"({"workload_graph": [{"Id": 5, "Name": "op", "NodeType": 4, "runtime": 10,
          "data_deps": [], "is_cpu_op": true},
         {"Id": 6, "Name": "gemm", "NodeType": 4, "runtime": 100, "data_deps": [5],
          "is_cpu_op": false}], "ngpus": 8})");
  const RankTrace jsonizer = imported(
      R"({"version": "0.0.4"}{"id": "5", "name": "op", "type": "COMP_NODE",
          "durationMicros": "10", "attr": [{"name": "is_cpu_op", "boolVal": true}]}
         {"id": "6", "name": "gemm", "type": "COMP_NODE", "dataDeps": ["5"],
          "durationMicros": "100", "attr": [{"name": "is_cpu_op", "boolVal": false},
          {"name": "involved_dim", "boolList": {"values": [true]}}]})");
  for (const RankTrace* trace : {&feeder, &jsonizer}) {
    ASSERT_EQ(trace->device_ops.size(), 1U);
    EXPECT_EQ(trace->device_ops[0].launch, 0U);
    EXPECT_EQ(start_us(trace->device_ops[0]), 10);
    EXPECT_EQ(trace->names[trace->device_ops[0].name], "gemm");
  }
}

TEST(ChakraImport, JsonImportsAlikeInEveryLayout) {
  const std::string feeder =
      R"({"workload_graph": [{"Id": 5, "Name": "op", "NodeType": 4, "runtime": 10,
          "data_deps": [], "is_cpu_op": true},
         {"Id": 6, "Name": "ncclDevKernel_AllReduce", "NodeType": 7, "runtime": 100,
          "data_deps": [5], "is_cpu_op": false, "comm_type": 0, "comm_size": 8,
          "involved_dim": [true, false]}], "ngpus": 8})";
  const std::string jsonizer =
      R"({"version": "0.0.4"}{"id": "5", "name": "op", "type": "COMP_NODE",
          "durationMicros": "10", "attr": [{"name": "is_cpu_op", "boolVal": true}]}
         {"id": "6", "name": "gemm", "type": "COMP_NODE", "dataDeps": ["5"],
          "durationMicros": "100", "attr": [{"name": "is_cpu_op", "boolVal": false},
          {"name": "bubblesim_grid", "uint64List": {"values": ["2", "1", "1"]}}]})";
  for (const std::string& text : {feeder, jsonizer}) {
    const std::string expected = sample::btr_bytes(imported(text));
    for (const sample::Layout& layout : sample::layouts()) {
      EXPECT_TRUE(sample::btr_bytes(imported(sample::laid_out(text, layout))) == expected)
          << layout.name;
    }
  }
}

TEST(ChakraImport, FilesNameTheirRanks) {
  const std::string folder = ::testing::TempDir();
  const std::string send = attribute("comm_dst", 1) + attribute("comm_size", 8);
  const std::string receive = attribute("comm_src", 0) + attribute("comm_size", 8);
  const std::filesystem::path paths[] = {folder + "chakra_pair.1.et", folder + "chakra_pair.0.et"};
  std::ofstream(paths[0]) << et_file(
      {{.id = 1, .name = "recv", .type = 6, .duration = 5, .more = receive}});
  std::ofstream(paths[1]) << et_file(
      {{.id = 1, .name = "send", .type = 5, .duration = 5, .more = send}});
  EXPECT_TRUE(looks_like_chakra(paths[0]));
  const auto job = import_chakra(paths);
  ASSERT_TRUE(job) << job.error().text();
  ASSERT_EQ(job->ranks.size(), 2U);
  EXPECT_EQ(job->ranks[0].collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(job->ranks[0].collectives[0].peers, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(job->ranks[1].rank, 1U);
  EXPECT_EQ(job->ranks[1].world_size, 2U);
  const std::filesystem::path twice[] = {paths[0], paths[0]};
  EXPECT_FALSE(import_chakra(twice));
}

// Graphs that are no graphs and files that are no files: counted losses or clear faults.

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

// A real file: the feeder's JSON of a ResNet job that ran in data parallel. Skipped without it.

/// The contents of a file in a tar archive; empty if it is not there. Headers are 512 bytes: name
/// at 0, size in octal at 124; contents are padded to 512.
std::string file_in_tar(const std::string& tar, std::string_view name) {
  for (std::size_t at = 0; at + 512 <= tar.size();) {
    const std::string entry = tar.substr(at, 100).c_str();
    const std::size_t size = std::stoul("0" + std::string(tar.substr(at + 124, 11).c_str()),
                                        nullptr, 8);
    if (entry.ends_with(name)) return tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  return {};
}

TEST(ChakraData, AResNetJobIsLaidOut) {
  const std::filesystem::path archive =
      std::filesystem::path(BUBBLESIM_DATA_DIR) / "mlcommons+chakra/tests/data/json_trace.tar.gz";
  auto source = ByteStream::open(archive);
  if (!source) GTEST_SKIP() << "no " << archive;
  std::string tar(std::size_t{16} << 20U, '\0');
  tar.resize(source->read(tar.data(), tar.size()));
  const auto trace = import_chakra_bytes(file_in_tar(tar, "/chakra.0.json"), "chakra.0.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(broken_promise(*trace), "");
  EXPECT_EQ(trace->device_ops.size(), 1216U);
  EXPECT_EQ(trace->host_calls.size(), 2448U);
  EXPECT_EQ(trace->collectives.size(), 7U);
  EXPECT_EQ(trace->counters.count("chakra_starts_inferred"), 3664U);
  EXPECT_EQ(trace->counters.count("chakra_cyclic_dependencies_dropped"), 0U);
  for (const DeviceOp& op : trace->device_ops) EXPECT_NE(op.launch, kNone);
}

}  // namespace
}  // namespace bubblesim::traces

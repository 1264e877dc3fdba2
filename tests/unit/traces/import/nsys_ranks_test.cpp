// Who is a rank in an Nsight Systems export, which number it has, and what NCCL says of it.
#include <gtest/gtest.h>

#include <vector>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/nsys_samples.hpp"
#include "tests/unit/traces/import/white_space.hpp"
#include "traces/import/nsys_nvtx.hpp"

namespace bubblesim::traces {
namespace {

using namespace sample;

// Processes 100 and 200 launch a kernel each, under the same correlation.
std::string two_processes() {
  return small_export() + call(2000, 2010, 5, 2, 200, 201) + kernel(2020, 2120, 5, 200);
}

TEST(NsysRanks, processes_are_ranks_in_order) {
  const JobTrace job = job_of(two_processes());
  ASSERT_EQ(job.ranks.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(job.ranks[i].rank, i);
    EXPECT_EQ(job.ranks[i].world_size, 2U);
    ASSERT_EQ(job.ranks[i].host_calls.size(), 1U);
    EXPECT_EQ(job.ranks[i].device_ops[0].launch, 0U);
  }
  EXPECT_EQ(job.ranks[1].provenance.note, "process 200, GPU 0");
  EXPECT_EQ(job.ranks[0].counters.count("nsys_ranks_from_order"), 2U);
}

TEST(NsysRanks, mpi_gives_ranks) {
  const JobTrace job = job_of(
      two_processes() +
      "CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER);"
      "INSERT INTO MPI_RANKS VALUES (" + std::to_string(global_tid(100, 101)) +
      ", 5), (" + std::to_string(global_tid(200, 201)) + ", 2);"
      "CREATE TABLE MPI_COMMUNICATORS (size INTEGER);"
      "INSERT INTO MPI_COMMUNICATORS VALUES (8);");
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].rank, 2U);
  EXPECT_EQ(job.ranks[0].provenance.note, "process 200, GPU 0");
  EXPECT_EQ(job.ranks[1].rank, 5U);
  EXPECT_EQ(job.ranks[1].world_size, 8U);
  EXPECT_EQ(job.ranks[0].counters.count("nsys_ranks_from_mpi"), 2U);
}

TEST(NsysRanks, the_environment_gives_the_rank_of_a_single_process) {
  const JobTrace job = job_of(small_export() +
                              "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);"
                              "INSERT INTO META_DATA_CAPTURE VALUES "
                              "('PROCESS_0:ENVIRONMENT_VARIABLE', 'RANK=\"3\"'), "
                              "('PROCESS_0:ENVIRONMENT_VARIABLE', 'WORLD_SIZE=\"4\"');");
  EXPECT_EQ(job.ranks[0].rank, 3U);
  EXPECT_EQ(job.ranks[0].world_size, 4U);
}

TEST(NsysRanks, one_process_with_two_gpus_is_two_ranks) {
  // Thread 101: launch on GPU 0, set device, launch on GPU 1, set device; 102 sets a device only.
  const JobTrace job = job_of(
      kTables + call(1000, 1010, 1) +
      call(1011, 1012, 2, 12) + call(1013, 1020, 3) + call(1021, 1022, 4, 12) +
      call(1023, 1024, 5, 12, 100, 102) + kernel(1100, 1200, 1, 100, 0) +
      kernel(1100, 1300, 3, 100, 1) + kernel(1400, 1500, 0, 100, 1));
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].device_ops.size(), 1U);
  EXPECT_EQ(job.ranks[1].device_ops.size(), 2U);
  EXPECT_EQ(job.ranks[1].streams[0].device, 1U);
  EXPECT_EQ(job.ranks[0].host_calls.size(), 2U);  // its launch, the set device after it
  EXPECT_EQ(job.ranks[1].host_calls.size(), 3U);  // GPU 1 ran most kernels: thread 102 too
  EXPECT_EQ(job.ranks[0].process, 1U);
  EXPECT_EQ(job.ranks[1].process, 1U);
  EXPECT_EQ(job.ranks[0].counters.count("nsys_calls_given_by_thread"), 3U);
}

TEST(NsysRanks, copies_of_a_gpu_without_kernels_stay_with_their_process) {
  const std::string row = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1200, 1300, 1, 2, 9, 0, ";
  const JobTrace job = job_of(
      small_export() + kCopyTable + row + std::to_string(global_pid(100)) +
      ", 64, 1, NULL, NULL);" + row + std::to_string(global_pid(300)) +
      ", 64, 1, NULL, NULL);");
  ASSERT_EQ(job.ranks.size(), 1U);
  EXPECT_EQ(job.ranks[0].device_ops.size(), 2U);
  EXPECT_EQ(job.ranks[0].counters.count("nsys_ops_on_devices_without_kernels"), 1U);
  EXPECT_EQ(job.ranks[0].counters.count("nsys_ops_of_processes_without_kernels_dropped"), 1U);
}

/// A payload as Nsight Systems stores it, in SQL.
std::string payload(std::uint64_t schema, const std::vector<std::uint64_t>& values) {
  std::vector<std::uint64_t> words{1, schema, 8 * values.size(), 32 + 8 * values.size()};
  words.insert(words.end(), values.begin(), values.end());
  std::string out = "x'";
  for (const std::uint64_t word : words) {
    for (unsigned byte = 0; byte < 8; ++byte) {
      static constexpr char kHex[] = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(word >> 8U * byte);
      out += {kHex[value >> 4U], kHex[value & 15U]};
    }
  }
  return out + "'";
}

// Schema 100: communicator, ranks, rank, device of ncclCommInitRank. Schema 101: communicator,
// bytes of a collective.
std::string nccl_schemas() {
  return "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, "
         "idx INTEGER, type INTEGER, name TEXT, offset INTEGER);"
         "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES "
         "(1, 100, 0, 18, 'NCCL communicator ID', NULL), (1, 100, 1, 18, 'No. of ranks', 8), "
         "(1, 100, 2, 18, 'Rank', 16), (1, 100, 3, 18, 'CUDA device', 24), "
         "(1, 101, 0, 18, 'NCCL communicator ID', NULL), "
         "(1, 101, 1, 22, 'Message size [bytes]', NULL);";
}

std::string range(std::int64_t start, std::int64_t end, const std::string& text,
                  const std::string& binary, const std::string& json = "NULL",
                  std::int64_t pid = 100) {
  return "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, binaryData, "
         "jsonText) VALUES (" +
         std::to_string(start) + ", " + std::to_string(end) + ", 59, '" + text + "', " +
         std::to_string(global_tid(pid, pid + 1)) + ", 1, " + binary + ", " + json + ");";
}

TEST(NsysRanks, nccl_announces_collectives_and_ranks) {
  const JobTrace job = job_of(kTables + kNvtxTable + nccl_schemas() +
                              range(10, 20, "ncclCommInitRank", payload(100, {0xabc, 16, 6, 0})) +
                              range(900, 990, "ncclAllReduce", payload(101, {0xabc, 4096})) +
                              call(950, 960, 5) + kernel(1000, 1500, 5, 100, 0, 7, 3));
  const RankTrace& trace = job.ranks[0];
  EXPECT_EQ(trace.rank, 6U);
  EXPECT_EQ(trace.world_size, 16U);
  EXPECT_EQ(trace.counters.count("nsys_ranks_from_nccl"), 1U);
  ASSERT_EQ(trace.collectives.size(), 1U);
  EXPECT_EQ(trace.device_ops[0].kind, DeviceOpKind::kCollective);
  const Collective& record = trace.collectives[0];
  EXPECT_EQ(record.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(record.bytes, 4096U);
  EXPECT_EQ(record.group_size, 16U);
  EXPECT_EQ(trace.names[record.group], "0xabc");
  EXPECT_EQ(trace.markers.size(), 1U);  // the initialisation
}

// The process is rank 6 of 16 in the communicator, which sends to rank 7; no rank is its 99th.
TEST(NsysRanks, nccl_announces_the_peers_of_sends) {
  for (const std::uint32_t peer : {7U, 99U}) {
    const JobTrace job = job_of(
        kTables + kNvtxTable + nccl_schemas() +
        "INSERT INTO StringIds VALUES (20, 'ncclDevKernel_SendRecv(x)');" +
        range(10, 20, "ncclCommInitRank", payload(100, {0xabc, 16, 6, 0})) +
        range(900, 990, "ncclSend", "NULL",
              "'{\"NCCL communicator ID\": " + std::to_string(0xabc) +
                  ", \"Message size [bytes]\": 512, \"Peer rank\": " + std::to_string(peer) +
                  "}'") +
        call(950, 960, 5) + kernel(1000, 1500, 5, 100, 0, 7, 20));
    const Collective& record = job.ranks[0].collectives.at(0);
    EXPECT_EQ(record.kind, CollectiveKind::kSend);
    EXPECT_EQ(record.place, peer == 7 ? 7U : 0U);
    EXPECT_EQ(record.peers.size(), peer == 7 ? 1U : 0U);
  }
}

TEST(NsysRanks, payloads_may_be_json) {
  const JobTrace job = job_of(kTables + kNvtxTable +
                              range(900, 990, "ncclAllReduce", "NULL",
                                    "'{\"NCCL communicator ID\": \"1,234\", "
                                    "\"Message size [bytes]\": 512}'") +
                              call(950, 960, 5) + kernel(1000, 1500, 5, 100, 0, 7, 3));
  ASSERT_EQ(job.ranks[0].collectives.size(), 1U);
  EXPECT_EQ(job.ranks[0].collectives[0].bytes, 512U);
  EXPECT_EQ(job.ranks[0].names[job.ranks[0].collectives[0].group], "0x4d2");
}

TEST(NsysRanks, json_payloads_are_read_in_every_layout) {
  const std::string payload = R"({"NCCL communicator ID": "1234", "Message size [bytes]": 512})";
  for (const sample::Layout& layout : sample::layouts()) {
    const auto read = nsys::payload_of_json(sample::laid_out(payload, layout));
    ASSERT_TRUE(read) << layout.name;
    EXPECT_EQ(read->communicator, 1234U) << layout.name;
    EXPECT_EQ(read->bytes, 512U) << layout.name;
  }
}

TEST(NsysRanks, ranges_of_pytorch_give_kinds) {
  // As emit_nvtx names them; the second launch has none around it.
  const JobTrace job = job_of(kTables + kNvtxTable +
                              "INSERT INTO StringIds VALUES (20, 'ncclDevKernel_SendRecv(x)');" +
                              range(900, 990, "nccl:all_to_all, op_id = 991144", "NULL") +
                              call(950, 960, 5) + kernel(1000, 1500, 5, 100, 0, 7, 20) +
                              call(1950, 1960, 6) + kernel(2000, 2500, 6, 100, 0, 7, 20));
  ASSERT_EQ(job.ranks[0].collectives.size(), 2U);
  EXPECT_EQ(job.ranks[0].collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(job.ranks[0].collectives[1].kind, CollectiveKind::kSendRecv);
}

// Numbers that no job has: a communicator of 2^32 ranks, one whose rank is not in it, a message of
// 2^63 bytes. Payloads that do not fit their schema: one value of two, one byte.
TEST(NsysRanks, payloads_that_make_no_sense_are_counted) {
  for (const auto& [ranges, count] :
       {std::pair{range(10, 20, "ncclCommInitRank", payload(100, {0xabc, 1ULL << 32U, 6, 0})) +
                      range(30, 40, "ncclCommInitRank", payload(100, {0xabd, 16, 16, 0})) +
                      range(900, 990, "ncclAllReduce", payload(101, {0xabc, 1ULL << 63U})), 3U},
        {range(900, 990, "ncclAllReduce", payload(101, {0xabc})) +
             range(991, 992, "ncclAllReduce", "x'00'"), 2U}}) {
    const JobTrace job = job_of(kTables + kNvtxTable + nccl_schemas() + ranges +
                                call(950, 960, 5) + kernel(1000, 1500, 5, 100, 0, 7, 3));
    EXPECT_EQ(job.ranks[0].counters.count("nsys_nccl_payloads_unreadable"), count);
    ASSERT_EQ(job.ranks[0].collectives.size(), 1U);
    EXPECT_EQ(job.ranks[0].collectives[0].kind, CollectiveKind::kAllReduce);  // by name
    EXPECT_EQ(job.ranks[0].collectives[0].bytes, 0U);
  }
}

TEST(NsysRanks, files_of_one_job_take_ranks_from_their_names) {
  const Export two(small_export(), "_rank2");
  const Export one(small_export(), "_rank1");
  const std::vector<std::filesystem::path> paths{two.path(), one.path()};
  const auto job = must(import_nsys_job(paths));
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].rank, 1U);
  EXPECT_EQ(job.ranks[1].rank, 2U);
  EXPECT_EQ(job.ranks[1].world_size, 3U);
}

TEST(NsysRanks, files_without_ranks_are_numbered_in_order) {
  const Export first(two_processes(), "_a");
  const Export second(small_export(), "_b");
  const std::vector<std::filesystem::path> paths{first.path(), second.path()};
  const auto job = must(import_nsys_job(paths));
  ASSERT_EQ(job.ranks.size(), 3U);
  EXPECT_EQ(job.ranks[2].rank, 2U);
  EXPECT_EQ(job.ranks[2].world_size, 3U);
}

TEST(NsysRanks, recordings_of_one_process_one_after_the_other_are_no_ranks) {
  const std::string later = kTables + call(5000, 5010, 5) + kernel(5020, 5120, 5);
  const std::string base =
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);";
  const Export first(small_export() + base, "_a");
  const Export second(later + base, "_b");
  const Export other(kTables + base + call(5000, 5010, 5, 2, 200, 201) +
                         kernel(5020, 5120, 5, 200), "_c");
  const Export without_base(later, "_d");
  using Paths = std::vector<std::filesystem::path>;
  const std::string fault =
      error_of(import_nsys_job(Paths{first.path(), other.path(), second.path()})).text();
  EXPECT_NE(fault.find(second.path().string() + ": is another recording of the process in " +
                       first.path().string()),
            std::string::npos)
      << fault;
  for (const Export* rank : {&other, &without_base}) {
    EXPECT_EQ(must(import_nsys_job(Paths{first.path(), rank->path()})).ranks.size(), 2U);
  }
}

}  // namespace
}  // namespace bubblesim::traces

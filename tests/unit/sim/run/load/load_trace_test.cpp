// Finding and reading traces: a file, a folder, both kinds together, and what cannot be read.
#include "sim/run/load_trace.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/topology.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/traces/chakra/chakra_jobs.hpp"
#include "tests/unit/traces/import/nsys_samples.hpp"
#include "traces/format/trace_writer.hpp"

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kSamples = fs::path(BUBBLESIM_SOURCE_DIR) / "traces/samples";
const fs::path kDeviceFiles = fs::path(BUBBLESIM_SOURCE_DIR) / "configs/devices";

class LoadTrace : public testing::Test {
 protected:
  static std::string sample(int rank) {
    return (kSamples / "training" / ("rank" + std::to_string(rank) + ".json.gz")).string();
  }

  // The sample's rank as a .btr file in the test's folder.
  std::string btr(int rank) const {
    const auto trace = must(load_trace({sample(rank)}));
    const std::string path = (folder_ / ("rank" + std::to_string(rank) + ".btr")).string();
    EXPECT_TRUE(traces::format::write_job(path, trace.job));
    return path;
  }

  static std::vector<std::uint32_t> ranks(const LoadedTrace& trace) {
    std::vector<std::uint32_t> found;
    for (const auto& rank : trace.job.ranks) found.push_back(rank.rank);
    return found;
  }

  static std::string fault(const std::vector<std::string>& paths) {
    return error_of(load_trace(paths)).text();
  }

  const TempFolder temp_;
  const fs::path folder_{temp_.path()};
};

hardware::GpuSpec device_of(const LoadedTrace& trace) {
  CounterSet counters;
  return must(device_for_replay(trace.job, kDeviceFiles, counters));
}

struct Replayed {
  workload::ReplayReport whole;     ///< the recording once
  workload::ReplayReport repeated;  ///< as a run repeats it
};

// Replays a job whose files record no starts.
Replayed replayed(const fs::path& folder,
                  const std::vector<std::vector<traces::testing::EtNode>>& ranks) {
  fs::create_directory(folder);
  traces::testing::write_job(folder.string(), "job", ranks);
  const auto trace = must(load_trace({folder.string()}));
  const hardware::GpuSpec device = device_of(trace);
  const auto job =
      workload::build_job_program(trace.job, device, {workload::Window::kWhole}).value();
  EXPECT_EQ(job.counters.count("program_collectives_not_joined"), 0U);
  EXPECT_EQ(job.counters.count("program_collective_ranks_not_waiting"), 0U);
  const auto pass = workload::build_job_program(trace.job, device, {}).value();
  return {workload::replay_alone(job, device).value(),
          workload::repeat_alone(pass, device).value()};
}

void expect_us(const Replayed& replayed, std::int64_t expected) {
  std::int64_t longest = 0;
  for (const auto& rank : replayed.whole.ranks) {
    longest = std::max(longest, to_ns(rank.simulated_span));
  }
  EXPECT_EQ(longest, 1000 * expected);
  for (const auto& rank : replayed.repeated.ranks) {
    for (const Duration iteration : rank.simulated) EXPECT_EQ(to_ns(iteration), 1000 * expected);
  }
}

// What a file of the job's records holds, to the byte.
std::string written(const traces::JobTrace& job, const fs::path& path) {
  EXPECT_TRUE(traces::format::write_job(path.string(), job));
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(LoadTrace, ranks_are_the_same_on_any_number_of_threads) {
  const fs::path chakra = folder_ / "chakra";
  fs::create_directory(chakra);
  traces::testing::write_job(chakra.string(), "job", traces::testing::data_parallel(5, 3));
  for (const std::string& folder : {(kSamples / "training").string(), chakra.string()}) {
    const auto alone = must(load_trace({folder}));
    for (const std::size_t threads : {2, 3, 64}) {
      const auto together = must(load_trace({folder}, {}, threads));
      EXPECT_EQ(written(together.job, folder_ / "together.btr"),
                written(alone.job, folder_ / "alone.btr"));
    }
  }
}

TEST_F(LoadTrace, of_several_faults_the_first_files_is_told_on_any_number_of_threads) {
  for (const char* const name : {"rank0.json", "rank1.json", "rank2.json"}) {
    std::ofstream(folder_ / name) << (name == std::string("rank0.json") ? "" : "no trace");
  }
  const auto alone = load_trace({folder_.string()});
  const auto together = load_trace({folder_.string()}, {}, 3);
  ASSERT_FALSE(alone);
  ASSERT_FALSE(together);
  EXPECT_EQ(together.error().text(), alone.error().text());
  EXPECT_THAT(alone.error().text(), HasSubstr("rank0.json"));
}

TEST_F(LoadTrace, programs_are_the_same_on_any_number_of_threads) {
  const auto trace = must(load_trace({(kSamples / "training").string()}));
  const hardware::GpuSpec device = device_of(trace);
  const auto alone = workload::build_job_program(trace.job, device, {}).value();
  const auto together = workload::build_job_program(
      trace.job, device, {workload::Window::kIterations, {}, 3}).value();
  ASSERT_EQ(together.ranks.size(), alone.ranks.size());
  EXPECT_EQ(together.collectives.size(), alone.collectives.size());
  for (std::size_t i = 0; i < alone.ranks.size(); ++i) {
    const program::Program& one = alone.ranks[i];
    const program::Program& other = together.ranks[i];
    EXPECT_EQ(other.rank, one.rank);
    EXPECT_EQ(other.start_offset, one.start_offset);
    ASSERT_EQ(other.ops.size(), one.ops.size());
    for (std::size_t op = 0; op < one.ops.size(); ++op) {
      ASSERT_EQ(std::tuple(other.ops[op].duration, other.ops[op].launch_lag.nanoseconds,
                           other.ops[op].gap.nanoseconds, other.ops[op].collective),
                std::tuple(one.ops[op].duration, one.ops[op].launch_lag.nanoseconds,
                           one.ops[op].gap.nanoseconds, one.ops[op].collective));
    }
  }
}

TEST_F(LoadTrace, JobsWithoutStartsTakeTheirClosedForm) {
  // 64 data-parallel ranks, 8 steps of 109 us for the slowest and 50 us of all-reduce.
  expect_us(replayed(folder_ / "data", traces::testing::data_parallel(64, 8)), 8 * 159);
  // 8 stages, 16 micro-batches of 10 and 20 us, 3 us a transfer.
  expect_us(replayed(folder_ / "pipeline", traces::testing::pipeline(8, 16)),
            (16 + 7) * 30 + 2 * 7 * 3);
  // 3 ranks that send to the next, then receive, then compute for 7 us: 4 steps.
  expect_us(replayed(folder_ / "ring", traces::testing::ring(3, 4)), 4 * 7);
  // The least of these: two ranks that exchange something once.
  expect_us(replayed(folder_ / "exchange", traces::testing::ring(2, 1)), 7);
}

// Both ranks receive before they send: the layout lets rank 0's receive go, and so does the replay.
TEST_F(LoadTrace, WhatTheLayoutCouldNotJoinIsNotJoinedAgain) {
  using traces::testing::attribute;
  std::vector<std::vector<traces::testing::EtNode>> ranks;
  for (const std::uint64_t other : {1, 0}) {
    ranks.push_back({{.id = 1, .name = "recv", .type = traces::testing::kRecv,
                      .more = attribute("comm_src", other)},
                     {.id = 2, .name = "gemm", .duration = 7, .data = {1}},
                     {.id = 3, .name = "send", .type = traces::testing::kSend, .data = {1},
                      .more = attribute("comm_dst", other)}});
  }
  traces::testing::write_job(folder_.string(), "job", ranks);
  const auto trace = must(load_trace({folder_.string()}));
  EXPECT_EQ(trace.job.ranks[0].counters.count("chakra_collectives_not_joined"), 1U);
  EXPECT_EQ(trace.job.ranks[1].counters.count("chakra_collectives_not_joined"), 0U);
  const hardware::GpuSpec device = device_of(trace);
  const auto job = workload::build_job_program(trace.job, device, {}).value();
  EXPECT_EQ(job.collectives.size(), 1U);
  must(workload::replay_alone(job, device));
}

TEST_F(LoadTrace, WhatIsLostOfAFileStaysWithItsTrace) {
  const std::string path = btr(0);
  fs::resize_file(path, fs::file_size(path) / 2);
  const auto trace = must(load_trace({path}));
  EXPECT_EQ(trace.counters.count("btr_end_missing"), 1U);
  EXPECT_EQ(trace.job.ranks.at(0).counters.count("btr_end_missing"), 1U);
}

TEST_F(LoadTrace, FaultsNameTheFileThatWasRead) {
  const auto trace = must(load_trace({btr(2)}));
  const Error fault = trace.located(Error{trace.job.ranks[0].provenance.source, {}, "odd"});
  EXPECT_EQ(fault.file, (folder_ / "rank2.btr").string());
}

TEST_F(LoadTrace, OneFileIsOneRank) {
  const auto trace = must(load_trace({sample(2)}));
  EXPECT_EQ(ranks(trace), std::vector<std::uint32_t>{2});
  EXPECT_FALSE(trace.job.ranks.front().device_ops.empty());
}

TEST_F(LoadTrace, AFolderIsAJobWithItsRanksInOrder) {
  const auto trace = must(load_trace({(kSamples / "training").string()}));
  EXPECT_EQ(ranks(trace), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(LoadTrace, RanksByFileOrderCountAsPeopleDo) {
  // Neither file says its rank; as text, worker10 would come before worker2.
  for (const char* name : {"worker10.json", "worker2.json"}) {
    std::ofstream(folder_ / name)
        << R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, )"
        << R"("ts": 1.5, "dur": 2, "args": {"device": 0, "stream": 7}}]})";
  }
  const auto trace = must(load_trace({folder_.string()}));
  ASSERT_EQ(ranks(trace), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(trace.job.ranks[0].provenance.source, "worker2.json");
  EXPECT_EQ(trace.job.ranks[1].provenance.source, "worker10.json");
}

TEST_F(LoadTrace, FilesOfBothKindsAreOneJobInOrderOfRank) {
  const auto trace = must(load_trace({btr(3), sample(1), btr(0), sample(2)}));
  EXPECT_EQ(ranks(trace), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(LoadTrace, AFolderMayHoldBothKindsAndOtherFiles) {
  (void)btr(0);
  fs::copy_file(sample(1), folder_ / "rank1.json.gz");
  std::ofstream(folder_ / "notes.txt") << "not a trace";
  const auto trace = must(load_trace({folder_.string()}));
  EXPECT_EQ(ranks(trace), (std::vector<std::uint32_t>{0, 1}));
}

// Archives made on a Mac have a "._rank0.json" beside each file, of 4 KiB that are no JSON.
TEST_F(LoadTrace, HiddenFilesAndFoldersAreNoTracesOfTheirFolder) {
  (void)btr(0);
  fs::create_directory(folder_ / ".checkpoints");
  for (const char* const name : {"._rank0.btr", "._rank1.json", ".checkpoints/rank2.json"}) {
    std::ofstream(folder_ / name) << std::string("\0\5\26\7\0\2\0\0Mac OS X", 16);
  }
  const auto trace = must(load_trace({folder_.string()}));
  EXPECT_EQ(ranks(trace), std::vector<std::uint32_t>{0});
  // Named, a hidden file is what was asked for.
  EXPECT_THAT(fault({(folder_ / "._rank1.json").string()}), HasSubstr("._rank1.json"));
}

TEST_F(LoadTrace, FiguresOfRetargetAreNoTraceOfTheirFolder) {
  (void)btr(0);
  std::ofstream(folder_ / "rank0.json") << "{\n \"recorded_ranks\": 4,\n \"ranks\": 1\n}\n";
  const auto trace = must(load_trace({folder_.string()}));
  EXPECT_EQ(ranks(trace), std::vector<std::uint32_t>{0});
}

// Each file by itself lacks the other three ranks.
TEST_F(LoadTrace, MissingRanksAreThoseThatNoFileOfAnyKindHas) {
  const auto missing = [](const std::vector<std::string>& paths) {
    const auto trace = must(load_trace(paths));
    return trace.counters.count("job_ranks_missing");
  };
  EXPECT_EQ(missing({btr(3)}), 3U);
  EXPECT_EQ(missing({btr(3), sample(1)}), 2U);
  EXPECT_EQ(missing({btr(3), btr(0), sample(1)}), 1U);
  EXPECT_EQ(missing({btr(3), sample(1), btr(0), btr(2)}), 0U);
}

// A pattern that meets no file gives such a list.
TEST_F(LoadTrace, NoPathAtAllIsAFault) {
  EXPECT_EQ(fault({}), "found no path, expected those of one trace or more");
}

TEST_F(LoadTrace, AMissingPathIsNamed) {
  EXPECT_THAT(fault({"nowhere"}), HasSubstr("nowhere: found no such file or folder"));
}

// Opened to be looked at, a pipe would wait for a writer, and lose what was looked at.
TEST_F(LoadTrace, APipeIsRefusedUnopened) {
  for (const char* const name : {"trace.json", "trace.btr", "trace"}) {
    const std::string pipe = folder_ / name;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(fault({pipe}), pipe + ": not a regular file; expected a trace or a folder");
  }
}

TEST_F(LoadTrace, AFolderWithoutTracesSaysWhatItLookedFor) {
  EXPECT_THAT(fault({folder_.string()}), HasSubstr("found no .btr, .json, .et or .sqlite file"));
}

TEST_F(LoadTrace, ARankTwiceIsRefusedWithBothFiles) {
  EXPECT_THAT(fault({btr(1), sample(1)}), HasSubstr("found rank 1 a second time"));
  EXPECT_THAT(fault({sample(1), sample(1)}), HasSubstr("rank1.json.gz"));
}

// Recordings of several processes are all of a program of one name.
TEST_F(LoadTrace, ARankTwiceIsRefusedWithBothFilesWhereTheyAreOfOneSource) {
  const auto trace = must(load_trace({sample(1)}));
  const std::string one = (folder_ / "one.btr").string();
  const std::string other = (folder_ / "other.btr").string();
  ASSERT_TRUE(traces::format::write_job(one, trace.job));
  ASSERT_TRUE(traces::format::write_job(other, trace.job));
  EXPECT_THAT(fault({one, other}), HasSubstr("one.btr or " + other));
}

TEST_F(LoadTrace, RanksThatWereReadApartAgreeOnHowManyThereAre) {
  const std::string first = btr(0);
  auto trace = must(load_trace({sample(1)}));
  EXPECT_FALSE(trace.residual);
  trace.job.ranks.front().world_size = 8;
  const std::string second = (folder_ / "second.btr").string();
  ASSERT_TRUE(traces::format::write_job(second, trace.job));
  const auto both = must(load_trace({first, second}));
  for (const auto& rank : both.job.ranks) EXPECT_EQ(rank.world_size, 8U);
  EXPECT_EQ(both.counters.count("job_world_sizes_differ"), 1U);
  EXPECT_EQ(both.counters.count("job_ranks_missing"), 6U);
  EXPECT_TRUE(both.residual);
}

// Two GPUs of one process, without a collective.
TEST_F(LoadTrace, RanksOfOneNsightExportHaveOneClock) {
  namespace made = traces::sample;
  const made::Export file(made::kStringTable + made::kKernelTable + made::kCallTable +
                          made::call(1000, 1010, 1) + made::call(1020, 1030, 2) +
                          made::kernel(1100, 1200, 1, 100, 0) +
                          made::kernel(1300, 1400, 2, 100, 1));
  const auto loss = [](const std::vector<std::string>& paths) {
    const auto trace = must(load_trace(paths));
    EXPECT_EQ(ranks(trace), (std::vector<std::uint32_t>{0, 1}));
    EXPECT_FALSE(trace.residual);
    return trace.counters.count("align_ranks_without_collective");
  };
  EXPECT_EQ(loss({file.path().string()}), 0U);
  const auto trace = must(load_trace({file.path().string()}));
  const std::string written = (folder_ / "two.btr").string();
  ASSERT_TRUE(traces::format::write_job(written, trace.job));
  EXPECT_EQ(loss({written}), 0U);
}

// Each rank by its own session: rank0/report1.sqlite, rank1/report1.sqlite.
TEST_F(LoadTrace, NsightExportsOfOneNameHaveClocksOfTheirOwn) {
  const traces::sample::Export file(traces::sample::small_export());
  for (const char* const rank : {"rank0", "rank1"}) {
    fs::create_directory(folder_ / rank);
    fs::copy_file(file.path(), folder_ / rank / "report1.sqlite");
  }
  const auto trace = must(load_trace({folder_.string()}));
  EXPECT_EQ(trace.counters.count("align_ranks_without_collective"), 1U);
  const std::string written = (folder_ / "both.btr").string();
  ASSERT_TRUE(traces::format::write_job(written, trace.job));
  const auto again = must(load_trace({written}));
  EXPECT_EQ(again.counters.count("align_ranks_without_collective"), 1U);
}

// No device file lists an A40 (84 SMs); an A10 has its compute capability, and 16 blocks an SM.
TEST_F(LoadTrace, ADeviceWithoutAFileIsMadeOfWhatTheTraceSaysOfIt) {
  auto trace = must(load_trace({sample(0)}));
  traces::DeviceInfo& recorded = trace.job.ranks.front().device;
  recorded = {"NVIDIA A40", 84, 8, 6, 47'850'782'720};
  CounterSet counters;
  const auto device = must(device_for_run(trace.job, {}, kDeviceFiles, counters));
  EXPECT_EQ(device.name, "NVIDIA A40");
  EXPECT_EQ(device.id, "a10");
  EXPECT_EQ(device.sm_count, 84U);
  EXPECT_EQ(device.memory.value, 47'850'782'720U);
  EXPECT_EQ(device.sm.max_blocks, 16U);
  EXPECT_EQ(counters.count("device_made_from_trace"), 1U);
  EXPECT_EQ(counters.begin()->second.severity, Severity::kLoss);
  recorded.sm_count = 0;  // a name alone says nothing of the GPU
  EXPECT_FALSE(device_for_run(trace.job, {}, kDeviceFiles, counters));
}

// Each step: 100 us of a rank, then an all-reduce of 4096 bytes by what the cluster's links give.
TEST_F(LoadTrace, CollectivesOfSizesAloneLastWhatTheyTakeOnTheCluster) {
  auto ranks = traces::testing::data_parallel(2, 3);
  for (auto& nodes : ranks) {
    for (auto& node : nodes) node.duration = node.type == traces::testing::kColl ? 0 : 100;
  }
  traces::testing::write_job(folder_.string(), "job", ranks);
  const std::string clusters = kDeviceFiles.parent_path() / "clusters";
  const auto trace = must(load_trace_on({folder_.string()}, "dgx-a100-80gb", clusters));
  const network::Topology links(hardware::find_cluster_spec("dgx-a100-80gb", clusters).value());
  const Duration one = links.solo_time(links.plan(network::CollectivePattern::kAllReduce,
                                                  Bytes{4096}, network::strided_group(0, 2)));
  EXPECT_GT(one, Duration{});
  const auto& ops = trace.job.ranks.front().device_ops;
  EXPECT_EQ(ops.back().end() - ops.front().start, 3 * (Duration{100'000} + one));
  EXPECT_EQ(trace.counters.count("collectives_simulated"), 6U);
  EXPECT_EQ(trace.counters.count("collectives_without_time"), 0U);
  EXPECT_TRUE(trace.collectives_simulated);
  // Once imported they have times, so that another cluster gives them none.
  const std::string imported = (folder_ / "imported.btr").string();
  ASSERT_TRUE(traces::format::write_job(imported, trace.job));
  EXPECT_FALSE(load_trace({imported}).value().collectives_simulated);
  EXPECT_FALSE(load_trace_on({imported}, "dgx-a100-80gb", clusters));
}

TEST_F(LoadTrace, AClusterThatNoCollectiveNeedsIsAFault) {
  const auto trace = error_of(load_trace_on({sample(0)}, "dgx-a100-80gb",
                                            (kDeviceFiles.parent_path() / "clusters").string()));
  EXPECT_THAT(trace.front().text(), HasSubstr("it needs no cluster (dgx-a100-80gb)"));
}

TEST_F(LoadTrace, ProgressNamesTheFile) {
  std::string last;
  ASSERT_TRUE(load_trace({sample(0)}, [&](const std::string& text) { last = text; }));
  EXPECT_THAT(last, HasSubstr("rank0.json.gz"));
}

}  // namespace
}  // namespace bubblesim::run

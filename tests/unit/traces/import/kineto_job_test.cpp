// Several files make a job; clocks of its ranks are put on one axis.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/traces/import/samples.hpp"
#include "traces/align.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;
using sample::file, sample::kernel;

class KinetoJob : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    return temp_.write(name, text);
  }

  /// The job of these files, by name.
  Result<JobTrace> job_of(const std::vector<std::pair<std::string, std::string>>& files) const {
    std::vector<fs::path> paths;
    for (const auto& [name, text] : files) paths.push_back(write(name, text));
    return import_kineto_job(paths);
  }

  static std::string of_rank(int rank, int world) {
    return file({kernel("1.5")}, "\"distributedInfo\": {\"rank\": " + std::to_string(rank) +
                                     ", \"world_size\": " + std::to_string(world) + "},");
  }

  const TempFolder temp_;
  const fs::path folder_{temp_.path()};
};

TEST_F(KinetoJob, files_are_sorted_by_recorded_rank) {
  const auto job = must(job_of({{"a.json", of_rank(1, 2)},
                                {"deeper/b.pt.trace.json", of_rank(0, 2)}}));
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[0].provenance.source, "b.pt.trace.json");
  EXPECT_EQ(job.ranks[1].rank, 1U);
  EXPECT_EQ(job.ranks[1].world_size, 2U);
}

std::string of_gpu(const std::string& model, const std::string& program) {
  std::vector<std::string> kernels;
  for (int i = 1; i <= 5; ++i) {
    kernels.push_back(kernel(std::to_string(20 * i), std::to_string(i), program + char('a' + i)));
  }
  return file(kernels, R"("deviceProperties": [{"id": 0, "name": ")" + model + "\"}],");
}

// Of another GPU; of the same, with five other kernels; of the same, with the same.
TEST_F(KinetoJob, ranks_that_may_be_of_another_job_are_counted) {
  const auto job = must(job_of({{"a.json", of_gpu("V100", "bert_")},
                                {"b.json", of_gpu("H100", "bert_")},
                                {"c.json", of_gpu("V100", "dlrm_")},
                                {"d.json", of_gpu("V100", "bert_")}}));
  std::vector<std::uint64_t> counts;
  for (const RankTrace& rank : job.ranks) {
    counts.push_back(rank.counters.count("kineto_ranks_of_another_job"));
  }
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{0, 1, 1, 0}));
}

TEST_F(KinetoJob, two_files_of_one_rank_are_a_fault_that_names_both) {
  const auto job = job_of({{"a.json", of_rank(1, 2)}, {"b.json", of_rank(1, 2)}});
  ASSERT_FALSE(job.has_value());
  EXPECT_NE(job.error().text().find("a.json"), std::string::npos);
  EXPECT_NE(job.error().text().find("b.json"), std::string::npos);
  EXPECT_NE(job.error().text().find("rank 1"), std::string::npos);
}

// The same name in another folder may be another rank's.
TEST_F(KinetoJob, two_cycles_of_one_process_are_a_fault_that_names_both) {
  const std::string text = file({kernel("1.5")});
  const fs::path first = write("host_7.1700000000000000001.pt.trace.json", text);
  const fs::path second = write("host_7.1700000000000000002.pt.trace.json", text);
  const auto job = import_kineto_job(std::vector<fs::path>{first, second});
  ASSERT_FALSE(job.has_value());
  EXPECT_NE(job.error().text().find("001.pt.trace"), std::string::npos);
  EXPECT_NE(job.error().text().find("002.pt.trace"), std::string::npos);
  for (const char* other : {"host_8.1700000000000000002.pt.trace.json",
                            "b/host_7.1700000000000000002.pt.trace.json", "host_7.x.json"}) {
    EXPECT_TRUE(import_kineto_job(std::vector<fs::path>{first, write(other, text)})) << other;
  }
}

TEST_F(KinetoJob, files_of_different_jobs_are_a_fault) {
  const auto job = job_of({{"a.json", of_rank(0, 2)}, {"b.json", of_rank(1, 4)}});
  ASSERT_FALSE(job.has_value());
  EXPECT_NE(job.error().message.find("found 4"), std::string::npos);
}

TEST_F(KinetoJob, missing_ranks_are_counted_and_listed) {
  const auto job = must(job_of({{"a.json", of_rank(1, 4)}, {"b.json", of_rank(3, 4)}}));
  const CounterSet& counters = job.ranks[0].counters;
  EXPECT_EQ(counters.count("job_ranks_missing"), 2U);
  for (const auto& [name, entry] : counters) {
    if (name == "job_ranks_missing") {
      EXPECT_NE(entry.help.find("0, 2 of 4"), std::string::npos);
    }
  }
}

TEST_F(KinetoJob, ranks_come_from_names_else_from_order) {
  const std::string text = file({kernel("1.5")});
  const auto named = must(job_of({{"x-rank1-chrome.json", text}, {"x-rank_0.json", text}}));
  EXPECT_EQ(named.ranks[0].provenance.source, "x-rank_0.json");
  EXPECT_EQ(named.ranks[0].counters.count("kineto_rank_from_file_name"), 1U);
  const auto ordered = must(job_of({{"z.json", text}, {"y.json", text}}));
  EXPECT_EQ(ordered.ranks[1].provenance.source, "y.json");
  EXPECT_EQ(ordered.ranks[1].rank, 1U);
  EXPECT_EQ(ordered.ranks[1].world_size, 2U);
  EXPECT_EQ(ordered.ranks[1].counters.count("kineto_rank_from_file_order"), 1U);
}

TEST_F(KinetoJob, a_file_that_is_no_trace_is_named_and_left_out) {
  const auto job = must(job_of({{"a.json", "[[1, 2], [3, 4]]"}, {"b.json", of_rank(0, 1)}}));
  ASSERT_EQ(job.ranks.size(), 1U);
  EXPECT_TRUE(job.ranks[0].counters.has_error());
  for (const auto& [name, entry] : job.ranks[0].counters) {
    if (name != "kineto_files_left_out") continue;
    EXPECT_NE(entry.help.find("a.json: is an array of arrays"), std::string::npos);
  }
  const auto none = error_of(import_kineto_job(std::vector<fs::path>{folder_ / "a.json"}));
  EXPECT_EQ(none.text().find("truncated"), std::string::npos);
}

TEST_F(KinetoJob, faults_of_files_and_folders_name_them) {
  EXPECT_FALSE(import_kineto_job(std::span<const fs::path>{}).has_value());
  EXPECT_FALSE(import_kineto_process(folder_).has_value());
  const auto absent = error_of(import_kineto_process(folder_ / "absent.json"));
  EXPECT_NE(absent.text().find("absent.json: no such file"), std::string::npos);
}

/// A kernel of 10.500 us on a stream 7 of its own.
std::string kernel_of(int device, const std::string& ts, const std::string& correlation) {
  std::string event = kernel(ts, correlation, "gemm" + std::to_string(device));
  const std::string field = "\"device\": 0";
  return event.replace(event.find(field), field.size(), "\"device\": " + std::to_string(device));
}

/// A thread launches on two GPUs in turn and waits for each; GPU 2 copies only.
std::vector<std::string> two_gpus() {
  std::string copy = kernel_of(2, "150", "6");
  copy.replace(copy.find("\"kernel\""), 8, "\"gpu_memcpy\"");
  return {sample::annotation("0", "200", "ProfilerStep#1"),
          sample::call("10", "1"), kernel_of(0, "20", "1"),
          sample::call("30", "2"), kernel_of(1, "40", "2"),
          sample::call("48", "3", "cudaDeviceSynchronize"),  // to 52: GPU 1 ends at 50.5
          sample::call("60", "4"), kernel_of(0, "70", "4"), kernel_of(0, "90", "4"),
          sample::call("98", "5", "cudaDeviceSynchronize"),  // to 102: GPU 0 ends at 100.5
          sample::call("140", "6", "cudaMemcpyAsync"), copy,
          R"({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 150, "args": )"
          R"({"Total Allocated": 7, "Total Reserved": 9, "Device Type": 1, "Device Id": 1}})"};
}

TEST_F(KinetoJob, a_process_with_two_gpus_is_a_rank_a_gpu) {
  const auto job = must(job_of({{"a.json", file(two_gpus(), R"("deviceProperties": [
      {"id": 0, "name": "A"}, {"id": 1, "name": "B"}],)")}}));
  ASSERT_EQ(job.ranks.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const RankTrace& rank = job.ranks[i];
    EXPECT_EQ(rank.rank, i);
    EXPECT_EQ(rank.world_size, 2U);
    EXPECT_EQ(rank.process, 1U);
    EXPECT_EQ(rank.device.name, i == 0 ? "A" : "B");
    EXPECT_EQ(rank.markers.size(), 1U);
    EXPECT_EQ(rank.threads.size(), 1U);
    for (const DeviceOp& op : rank.device_ops) {
      ASSERT_NE(op.launch, kNone);
      EXPECT_EQ(rank.host_calls[op.launch].correlation, op.correlation);
    }
  }
  // Three kernels and the copy of GPU 2; three launches and a wait.
  EXPECT_EQ(job.ranks[0].device_ops.size(), 4U);
  EXPECT_EQ(job.ranks[0].host_calls.size(), 4U);
  EXPECT_EQ(job.ranks[1].device_ops.size(), 1U);
  ASSERT_EQ(job.ranks[1].host_calls.size(), 2U);
  EXPECT_EQ(job.ranks[1].host_calls[1].kind, HostCallKind::kDeviceSync);
  EXPECT_EQ(job.ranks[0].counters.count("join_ops_on_further_devices"), 1U);
  EXPECT_EQ(job.ranks[0].counters.count("join_calls_given_by_thread"), 2U);
  EXPECT_EQ(job.ranks[0].memory.size(), 1U);
  EXPECT_EQ(job.ranks[0].counters.count("join_memory_samples_given"), 1U);
}

TEST_F(KinetoJob, further_gpus_of_a_process_come_after_the_ranks_of_its_job) {
  const auto of_rank_with_two = [](int rank) {
    return file(two_gpus(), "\"distributedInfo\": {\"rank\": " + std::to_string(rank) +
                                ", \"world_size\": 2},");
  };
  const auto job = must(job_of({{"a.json", of_rank_with_two(0)}, {"b.json", of_rank_with_two(1)}}));
  ASSERT_EQ(job.ranks.size(), 4U);
  const std::array<std::size_t, 4> operations{4, 4, 1, 1};
  const std::array<std::uint32_t, 4> processes{1, 2, 1, 2};
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(job.ranks[i].rank, i);
    EXPECT_EQ(job.ranks[i].world_size, 4U);
    EXPECT_EQ(job.ranks[i].device_ops.size(), operations[i]);
    EXPECT_EQ(job.ranks[i].process, processes[i]);
  }
}

TEST_F(KinetoJob, progress_ends_at_the_size_of_the_file) {
  const fs::path path = write("a.json", of_rank(0, 1));
  ImportProgress last;
  ASSERT_TRUE(import_kineto_process(path, {}, [&](const ImportProgress& p) { last = p; }));
  EXPECT_EQ(last.bytes_read, fs::file_size(path));
  EXPECT_EQ(last.bytes_total, fs::file_size(path));
}

// In each of its four iterations a rank has four micro-batches of 4 layers (10 kernels forward, 12
// backward) with an embedding in the first stage (ranks 0 and 1) and 4 kernels of the loss in the
// last, and the optimizer's 5; two transfers a micro-batch and two all-reduces; a copy out, and one
// in in the first stage.
TEST(StoredSamples, of_training_are_read_without_loss) {
  std::vector<fs::path> paths;
  for (const char* name : {"rank0", "rank1", "rank2", "rank3"}) {
    paths.push_back(fs::path(BUBBLESIM_SOURCE_DIR) / "traces/samples/training" /
                    (name + std::string(".json.gz")));
  }
  for (const RankTrace& rank : must(import_kineto_job(paths)).ranks) {
    SCOPED_TRACE(rank.rank);
    const bool first = rank.rank < 2;
    std::map<DeviceOpKind, int> ops;
    for (const DeviceOp& op : rank.device_ops) ++ops[op.kind];
    EXPECT_EQ(ops[DeviceOpKind::kKernel], 4 * (4 * (4 * 22 + (first ? 1 : 4)) + 5));
    EXPECT_EQ(ops[DeviceOpKind::kCollective], 4 * (4 * 2 + 2));
    EXPECT_EQ(ops[DeviceOpKind::kCopy], 4 * (first ? 2 : 1));
    EXPECT_EQ(std::ranges::count(rank.markers, MarkerKind::kIteration, &Marker::kind), 4);
    for (const auto& [name, entry] : rank.counters) {
      EXPECT_LT(entry.severity, Severity::kLoss) << name << ": " << entry.count;
    }
  }
}

/// A rank whose collectives end at the given microseconds, all 10.5 us long.
RankTrace rank_with(std::uint32_t rank, const std::vector<int>& ends_us,
                    const std::string& name = "ncclDevKernel_AllReduce") {
  std::vector<std::string> events;
  for (const int end : ends_us) {
    events.push_back(kernel(std::to_string(end - 11) + ".500", "0", name));
  }
  ImportOptions options;
  options.rank = rank;
  return import_kineto_text(file(events), "t.json", options).value();
}

/// Ends of collectives on two ranks, and what is found; afterwards nothing else fits the clocks.
struct Aligned {
  std::string_view name;
  std::vector<int> ends0, ends1;
  std::int64_t offset_us;  ///< of rank 1
  std::uint64_t matched, unmatched, ambiguous;
  std::int64_t residual_max_us = 0;
  std::string kernel = "ncclDevKernel_AllReduce";
};

TEST(Align, clocks_are_moved_by_what_ends_of_collectives_say) {
  for (const Aligned& row : {
           // Rank 1 is 1000 us late; its third collective ends 3 us later than that.
           Aligned{"the median difference of ends is the offset", {100, 250, 430, 700, 800},
                   {1100, 1250, 1433, 1700, 1800}, -1000, 5, 0, 0, 3},
           // Rank 1 began two collectives later and saw one more at the end.
           {"windows that differ are matched where they overlap", {100, 250, 430, 700, 800},
            {435, 705, 805, 1000}, -5, 3, 1, 0},
           // Steps of 1000 us. Rank 1 is 501 us late, or 499 us early and a step behind: 4 pairs,
           // or 3.
           {"clocks half a step apart are taken to show the same steps", {100, 1100, 2100, 3100},
            {601, 1601, 2601, 3601}, -501, 4, 0, 1},
           // Rank 1 began a step later; its clock is 100 us late. The next best offset is 900 us.
           {"even steps are matched by the least offset", {100, 1100, 2100, 3100},
            {1200, 2200, 3200, 4200}, -100, 3, 1, 0},
           {"sends and receives move no clock", {100, 200}, {150, 290}, 0, 0, 0, 0, 0,
            "ncclDevKernel_SendRecv"}}) {
    SCOPED_TRACE(row.name);
    JobTrace job{{rank_with(0, row.ends0, row.kernel), rank_with(1, row.ends1, row.kernel)}};
    const AlignmentReport report = align_ranks(job);
    const CounterSet& counters = job.ranks[1].counters;
    EXPECT_EQ(report.ranks[1].offset, std::chrono::microseconds{row.offset_us});
    EXPECT_EQ(report.matched, row.matched);
    EXPECT_EQ(report.ranks[1].matched, row.matched);
    EXPECT_EQ(report.ranks[1].unmatched, row.unmatched);
    EXPECT_EQ(report.residual_median, Duration{0});
    EXPECT_EQ(report.residual_max, std::chrono::microseconds{row.residual_max_us});
    EXPECT_EQ(to_ns(job.ranks[1].device_ops[0].end()), 1000 * (row.ends1[0] + row.offset_us));
    EXPECT_EQ(counters.count("align_collectives_unmatched"), row.unmatched);
    EXPECT_EQ(counters.count("align_offset_ambiguous"), row.ambiguous);
    EXPECT_EQ(counters.count("align_ranks_without_collective"), row.matched == 0 ? 1U : 0U);
    align_ranks(job);  // as of a trace that was written and is read again
    EXPECT_EQ(counters.count("align_collectives_unmatched"), row.unmatched);
    EXPECT_EQ(counters.count("align_offset_ambiguous"), 0U);
  }
}

TEST(Align, whatever_has_a_time_goes_with_its_rank) {
  JobTrace job{{rank_with(0, {100, 250, 430}), rank_with(1, {1100, 1250, 1430})}};
  RankTrace& late = job.ranks[1];
  late.stalls.push_back({TraceTime{} + Duration{1'120'000}, Duration{50'000}, {}, {}});
  late.clocks.push_back({TraceTime{} + Duration{1'001'000}, 5, 6});
  align_ranks(job);
  EXPECT_EQ(to_ns(late.stalls[0].start), 120'000);
  EXPECT_EQ(to_ns(late.clocks[0].at), 1'000);
  EXPECT_EQ(late.clocks[0].realtime_ns, 5);
}

TEST(Align, a_rank_may_hang_on_another_than_the_first) {
  const auto in_group = [](std::uint32_t rank, const std::vector<std::pair<int, int>>& ends) {
    RankTrace trace = rank_with(rank, [&] {
      std::vector<int> out;
      for (const auto& [end, group] : ends) out.push_back(end);
      return out;
    }());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      trace.collectives[i].group = trace.names.intern("group " + std::to_string(ends[i].second));
    }
    return trace;
  };
  // Rank 2 shares group 2 with rank 1 only; rank 1 shares group 1 with rank 0. 10 us each.
  JobTrace job{{in_group(0, {{100, 1}}), in_group(1, {{110, 1}, {200, 2}}),
                in_group(2, {{210, 2}})}};
  const AlignmentReport report = align_ranks(job);
  EXPECT_EQ(report.ranks[1].offset, Duration{-10000});
  EXPECT_EQ(report.ranks[2].offset, Duration{-20000});
  EXPECT_EQ(report.ranks[2].reference, 1U);
}

TEST(Align, ranks_of_one_clock_need_no_collective) {
  // As of one export: rank 1 has no collective, rank 2 ends its own 30 us after rank 0's.
  JobTrace job{{rank_with(0, {100, 250}), rank_with(1, {100}, "gemm"), rank_with(2, {130, 280})}};
  const std::vector<std::string> one{"a", "a", "a"};
  const AlignmentReport report = align_ranks(job, one);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report.ranks[i].offset, Duration{0});
    EXPECT_EQ(job.ranks[i].counters.count("align_ranks_without_collective"), 0U);
  }
  EXPECT_EQ(report.ranks[2].matched, 2U);
  EXPECT_EQ(report.residual_median, Duration{30'000});
}

TEST(Align, ranks_of_one_clock_are_moved_together) {
  // Ranks 1 and 2 are of another export, 10 us late; rank 1 has nothing to tell it by.
  JobTrace job{{rank_with(0, {100, 250}), rank_with(1, {100}, "gemm"), rank_with(2, {110, 260}),
                rank_with(3, {100}, "gemm")}};
  const std::vector<std::string> clocks{"a", "b", "b", ""};
  const AlignmentReport report = align_ranks(job, clocks);
  EXPECT_EQ(report.ranks[1].offset, Duration{-10'000});
  EXPECT_EQ(report.ranks[1].reference, 2U);
  EXPECT_EQ(report.ranks[2].offset, Duration{-10'000});
  EXPECT_EQ(report.ranks[2].reference, 0U);
  EXPECT_EQ(job.ranks[1].counters.count("align_ranks_without_collective"), 0U);
  EXPECT_EQ(job.ranks[3].counters.count("align_ranks_without_collective"), 1U);
}

}  // namespace
}  // namespace bubblesim::traces

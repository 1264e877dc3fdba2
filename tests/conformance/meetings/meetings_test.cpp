// Who meets whom, by recorder: the table of TABLE.md, and what follows from it for other ranks.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/run/load_trace.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/replay.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/conformance/meetings/recording.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/traces/import/nsys_samples.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::run::testing {

using Kernel = Recording::Kernel;
using Ranks = std::vector<std::uint32_t>;
using traces::CollectiveKind;

enum class Nvtx { kNone, kRanges };  ///< NCCL's ranges beside its kernels, or none

/// Which NCCL interface names the collectives: its profiler plug-in or, without one, its ranges.
enum class Announced { kByProfiler, kByRanges };

/// The same for all ranks of a communicator, FNV's.
std::uint64_t hash_of(const Ranks& ranks) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const std::uint32_t rank : ranks) hash = (hash ^ (rank + 1)) * 1'099'511'628'211U;
  return hash >> 1U;
}
std::uint32_t place_of(std::uint32_t rank, const Ranks& ranks) {
  return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

// ---- Nsight Systems; times in ns

std::string range(std::int64_t start, std::int64_t end, const char* name, const Ranks& ranks,
                  const std::string& more) {
  return fmt::format(
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) VALUES "
      "({}, {}, 59, '{}', {}, 1, '{{\"NCCL communicator ID\": {}, {}}}');",
      start, end, name, traces::sample::global_tid(100, 101), hash_of(ranks), more);
}

std::string made(std::uint32_t own, const Ranks& ranks) {
  return range(10, 20, "ncclCommInitRank", ranks,
               fmt::format("\"No. of ranks\": {}, \"Rank\": {}, \"CUDA device\": 0", ranks.size(),
                           place_of(own, ranks)));
}

/// Operations of a group come before its launch; the launch of a lone one is within it.
std::string ranges_of(const Kernel& kernel) {
  constexpr const char* kBytes = "\"Message size [bytes]\": 8192";
  const std::int64_t called = 1'000 * kernel.called;
  if (kernel.communicator.empty()) return {};
  if (kernel.ends.empty()) {
    return range(called - 100, called + 3'000, "ncclAllReduce", kernel.communicator, kBytes);
  }
  std::string text;
  const std::int64_t lasts = kernel.ends.size() == 1 ? 3'000 : 100;
  std::int64_t at = called - 1'000;
  for (const Recording::End& end : kernel.ends) {
    text += range(at, at + lasts, end.name[0] == 's' ? "ncclSend" : "ncclRecv", kernel.communicator,
                  fmt::format("{}, \"Peer rank\": {}", kBytes,
                              place_of(end.partner, kernel.communicator)));
    at += 200;
  }
  return text;
}

std::string nsight_export(const Recording& recording, std::uint32_t own, Nvtx nvtx) {
  std::string sql = traces::sample::kStringTable + traces::sample::kKernelTable +
                    traces::sample::kCallTable + traces::sample::kNvtxTable +
                    "INSERT INTO StringIds VALUES (20, 'ncclDevKernel_SendRecv(x)'); BEGIN;";
  Ranks world;
  for (std::uint32_t rank = 0; rank < recording.rank_count(); ++rank) world.push_back(rank);
  std::set<Ranks> communicators{world};
  std::int64_t correlation = 0;
  for (const Kernel& kernel : recording.kernels(own)) {
    const std::int64_t name = kernel.communicator.empty() ? 1 : kernel.ends.empty() ? 3 : 20;
    const std::int64_t called = 1'000 * kernel.called;
    sql += traces::sample::call(called, called + 2'000, ++correlation);
    sql += traces::sample::kernel(1'000 * kernel.start, 1'000 * kernel.end, correlation, 100, 0,
                                  kernel.stream, name);
    if (nvtx == Nvtx::kRanges) sql += ranges_of(kernel);
    if (!kernel.communicator.empty()) communicators.insert(kernel.communicator);
  }
  if (nvtx == Nvtx::kNone) communicators = {world};
  for (const Ranks& ranks : communicators) sql += made(own, ranks);
  return sql + "COMMIT;";
}

// ---- bubblesim's recorder

CollectiveKind kind_of(const Recording::End& end) {
  return end.name[0] == 's' ? CollectiveKind::kSend : CollectiveKind::kRecv;
}

class OwnRecorder {
 public:
  OwnRecorder(std::uint32_t own, std::uint32_t world) {
    trace_.rank = own;
    trace_.world_size = world;
    trace_.device.name = "NVIDIA A100-SXM4-80GB";
    trace_.provenance.format = traces::kRecordingFormat;
    trace_.shapes.intern({});
    trace_.threads.push_back({1, "main"});
  }

  void add(const Kernel& kernel, Announced announced) {
    const auto at = [](std::int64_t us) { return TraceTime{std::chrono::microseconds(us)}; };
    const std::uint64_t correlation = trace_.host_calls.size() + 1;
    traces::HostCall call;
    call.start = at(kernel.called);
    call.duration = std::chrono::microseconds(2);
    call.correlation = correlation;
    call.name = trace_.names.intern("cudaLaunchKernel");
    call.kind = traces::HostCallKind::kLaunchKernel;
    trace_.host_calls.push_back(call);
    traces::DeviceOp op;
    op.start = at(kernel.start);
    op.duration = at(kernel.end) - at(kernel.start);
    op.correlation = correlation;
    op.name = trace_.names.intern(kernel.name);
    op.stream = stream(kernel.stream);
    trace_.device_ops.push_back(op);
    if (kernel.communicator.empty()) return;
    if (announced == Announced::kByProfiler) announce_launch(kernel);
    else announce_calls(kernel);
  }

  traces::RankTrace take() { return std::move(trace_); }

 private:
  StreamId stream(int system_id) {
    const auto number = static_cast<std::uint64_t>(system_id);
    const auto known = std::ranges::find(trace_.streams, number, &traces::Stream::system_id);
    const auto place = static_cast<std::uint32_t>(known - trace_.streams.begin());
    if (known == trace_.streams.end()) trace_.streams.push_back({number, 0});
    return StreamId{place};
  }

  traces::Collective record_of(const Kernel& kernel) {
    traces::Collective record;
    record.kind = CollectiveKind::kAllReduce;
    record.bytes = 8'192;
    record.group = trace_.names.intern(fmt::format("nccl:{:016x}", hash_of(kernel.communicator)));
    record.group_size = static_cast<std::uint32_t>(kernel.communicator.size());
    return record;
  }

  void note(const Kernel& kernel, traces::CollectiveSource source, traces::Collective record) {
    const auto at = TraceTime{std::chrono::microseconds(kernel.called - 1)};
    trace_.notes.push_back({at, {}, ThreadId{0}, source,
                            static_cast<std::uint32_t>(trace_.collectives.size())});
    trace_.collectives.push_back(std::move(record));
  }

  // A launch with sends and receives is one event: NcclCommunicator::emit_exchange.
  void announce_launch(const Kernel& kernel) {
    traces::Collective record = record_of(kernel);
    const bool pair = kernel.communicator.size() == 2;
    const bool lone = kernel.ends.size() == 1;
    std::uint64_t* number = &collectives_[kernel.communicator];
    if (!kernel.ends.empty()) {
      record.kind = pair || !lone ? CollectiveKind::kSendRecv : kind_of(kernel.ends[0]);
      record.place = place_of(trace_.rank, kernel.communicator) + 1;
      std::set<std::uint32_t> peers;
      for (const auto& end : kernel.ends) peers.insert(place_of(end.partner, kernel.communicator));
      record.peers = {peers.begin(), peers.end()};
      number = pair ? &exchanges_[kernel.communicator]
                    : &transfers_[{kernel.communicator, kernel.ends[0].partner,
                                   kernel.ends[0].name[0]}];
    }
    record.sequence_recorded = kernel.ends.empty() || pair || lone;
    record.sequence = record.sequence_recorded ? *number : 0;
    ++*number;
    note(kernel, traces::CollectiveSource::kNcclProfiler, std::move(record));
  }

  // Each call has a range.
  void announce_calls(const Kernel& kernel) {
    const auto announce = [&](traces::Collective record) {
      note(kernel, traces::CollectiveSource::kNvtx, std::move(record));
    };
    if (kernel.ends.empty()) return announce(record_of(kernel));
    for (const Recording::End& end : kernel.ends) {
      traces::Collective record = record_of(kernel);
      record.kind = kind_of(end);
      record.place = place_of(trace_.rank, kernel.communicator) + 1;
      record.peers = {place_of(end.partner, kernel.communicator)};
      announce(std::move(record));
    }
  }

  traces::RankTrace trace_;
  std::map<Ranks, std::uint64_t> collectives_, exchanges_;  // of communicators, so far
  std::map<std::tuple<Ranks, std::uint32_t, char>, std::uint64_t> transfers_;
};

/// Writes one file a rank.
void write_nsight(const Recording& recording, Nvtx nvtx, const std::filesystem::path& folder) {
  for (std::uint32_t own = 0; own < recording.rank_count(); ++own) {
    sqlite3* file = nullptr;
    const std::string path = folder / fmt::format("rank{}.sqlite", own);
    ASSERT_EQ(sqlite3_open(path.c_str(), &file), SQLITE_OK);
    const std::string sql = "PRAGMA synchronous=OFF; " + nsight_export(recording, own, nvtx);
    ASSERT_EQ(sqlite3_exec(file, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(file);
    sqlite3_close(file);
  }
}

/// Writes one file for all ranks.
void write_own(const Recording& recording, Announced announced,
               const std::filesystem::path& folder) {
  traces::JobTrace job;
  for (std::uint32_t own = 0; own < recording.rank_count(); ++own) {
    OwnRecorder recorder(own, recording.rank_count());
    for (const Kernel& kernel : recording.kernels(own)) recorder.add(kernel, announced);
    job.ranks.push_back(recorder.take());
  }
  ASSERT_TRUE(traces::format::write_job(folder / "job.btr", job));
}

}  // namespace bubblesim::run::testing

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;
using testing::Announced, testing::Groups, testing::Job, testing::Names, testing::Noise;
using testing::Nvtx, testing::Recording, testing::Sends, testing::Torch;

constexpr std::array kAll{Torch::k1_13, Torch::k2_1, Torch::k2_2, Torch::k2_4,
                          Torch::k2_7,  Torch::k2_9, Torch::k2026};
constexpr std::array kVersions{"1.13", "2.1", "2.2", "2.4", "2.7", "2.9", "2026"};

enum class Recorder { kKineto, kNsightKernels, kNsight, kOwnRanges, kOwn };

struct Row {
  const char* name;
  Recorder recorder;
  Torch torch;
};
constexpr std::array kRows{
    Row{"PyTorch 1.13", Recorder::kKineto, Torch::k1_13},
    Row{"PyTorch 2.1", Recorder::kKineto, Torch::k2_1},
    Row{"PyTorch 2.2", Recorder::kKineto, Torch::k2_2},
    Row{"PyTorch 2.4", Recorder::kKineto, Torch::k2_4},
    Row{"PyTorch 2.7", Recorder::kKineto, Torch::k2_7},
    Row{"PyTorch 2.9", Recorder::kKineto, Torch::k2_9},
    Row{"PyTorch of 2026", Recorder::kKineto, Torch::k2026},
    Row{"Nsight, kernels alone", Recorder::kNsightKernels, Torch::k2_9},
    Row{"Nsight, NCCL's ranges", Recorder::kNsight, Torch::k2_9},
    Row{"bubblesim, NCCL's ranges", Recorder::kOwnRanges, Torch::k2_9},
    Row{"bubblesim, NCCL's profiler", Recorder::kOwn, Torch::k2_9}};

/// Of meetings, and of the kernels that meet nobody.
struct Tally {
  std::uint64_t meetings = 0, found = 0, wrong = 0;
  std::uint64_t unjoined = 0, counted = 0;

  Tally& operator+=(const Tally& other) {
    meetings += other.meetings;
    found += other.found;
    wrong += other.wrong;
    unjoined += other.unjoined;
    counted += other.counted;
    return *this;
  }
};

/// A meeting is found if its kernels are in one collective, and no others; a collective of other
/// kernels is wrong.
Tally tally_of(const Recording& recording, const workload::JobProgram& job) {
  Tally tally{static_cast<std::uint64_t>(recording.meeting_count()), 0, 0, 0,
              job.counters.count("program_collectives_not_joined")};
  std::map<int, std::size_t> kernels;  // of each meeting
  std::vector<std::vector<int>> made(job.collectives.size());
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    EXPECT_EQ(recording.kernels(rank).size(), job.ranks[rank].ops.size());
    for (std::size_t op = 0; op < job.ranks[rank].ops.size(); ++op) {
      const int meeting = recording.kernels(rank)[op].meeting;
      if (meeting < 0) continue;
      ++kernels[meeting];
      const std::uint32_t collective = job.ranks[rank].ops[op].collective;
      if (collective == program::kNoIndex) ++tally.unjoined;
      else made[collective].push_back(meeting);
    }
  }
  for (const std::vector<int>& meetings : made) {
    const bool one = std::ranges::count(meetings, meetings[0]) == std::ssize(meetings);
    ++(one && meetings.size() == kernels[meetings[0]] ? tally.found : tally.wrong);
  }
  return tally;
}

class Meetings : public ::testing::Test {
 protected:
  void write(const Recording& recording, Recorder recorder) {
    switch (recorder) {
      case Recorder::kNsightKernels: return write_nsight(recording, Nvtx::kNone, folder_);
      case Recorder::kNsight: return write_nsight(recording, Nvtx::kRanges, folder_);
      case Recorder::kOwnRanges: return write_own(recording, Announced::kByRanges, folder_);
      case Recorder::kOwn: return write_own(recording, Announced::kByProfiler, folder_);
      case Recorder::kKineto: break;
    }
    const std::vector<std::string> files = recording.files();
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      std::ofstream(folder_ / ("rank" + std::to_string(rank) + ".json")) << files[rank];
    }
  }

  workload::JobProgram program_of(const Recording& recording,
                                  workload::Window window = workload::Window::kWhole,
                                  Recorder recorder = Recorder::kKineto) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    write(recording, recorder);
    const auto trace = load_trace({folder_.string()});
    EXPECT_TRUE(trace) << trace.error().text();
    CounterSet counters;
    device_ = device_for_replay(trace->job, fs::path(BUBBLESIM_SOURCE_DIR) / "configs/devices",
                                counters).value();
    return workload::build_job_program(trace->job, device_, {window}).value();
  }

  /// Of even and of noisy times. Nothing is wrong, and what is left out is counted.
  Tally tally_of_all(Job what, Recorder recorder = Recorder::kKineto) {
    Tally sum;
    for (const Noise noise : {Noise::kNone, Noise::kSome}) {
      what.noise = noise;
      const Recording recording(what);
      const Tally tally =
          tally_of(recording, program_of(recording, workload::Window::kWhole, recorder));
      EXPECT_EQ(tally.wrong, 0U);
      EXPECT_EQ(tally.counted, tally.unjoined);
      sum += tally;
    }
    return sum;
  }

  const TempFolder temp_;
  const fs::path folder_{temp_.path()};
  hardware::GpuSpec device_;
};

struct Shape {
  const char* name;
  std::uint32_t stages, tensor, data;
};
constexpr std::array kShapes{
    Shape{"2 stages", 2, 1, 1},        Shape{"4", 4, 1, 1},
    Shape{"8", 8, 1, 1},               Shape{"4, tensor 2", 4, 2, 1},
    Shape{"4, data 2", 4, 1, 2},       Shape{"4, both", 4, 2, 2}};

TEST_F(Meetings, AreThoseOfTheTable) {
  std::string table = "| recorder | sends | communicators |";
  for (const Shape& shape : kShapes) table += fmt::format(" {} |", shape.name);
  table += " wrong | left out, counted |\n|---|---|---|";
  for (std::size_t i = 0; i < kShapes.size() + 2; ++i) table += "---:|";
  for (const auto& [recorder_name, recorder, torch] : kRows) {
    for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
      for (const Groups groups : {Groups::kOne, Groups::kPerNeighbour}) {
        table += fmt::format("\n| {} | {} | {} |", recorder_name,
                             sends == Sends::kBatched ? "batched" : "single",
                             groups == Groups::kOne ? "one" : "several");
        Tally all;
        for (const auto& [name, stages, tensor, data] : kShapes) {
          const Tally tally = tally_of_all({.torch = torch, .stages = stages, .tensor = tensor,
                                            .data = data, .sends = sends, .groups = groups},
                                           recorder);
          table += fmt::format(" {}/{} |", tally.found, tally.meetings);
          all += tally;
        }
        table += fmt::format(" {} | {} |", all.wrong, all.counted);
      }
    }
  }
  const std::string text =
      read_text_file(BUBBLESIM_SOURCE_DIR "/tests/conformance/meetings/TABLE.md").value();
  EXPECT_NE(text.find("\n\n" + table + "\n"), std::string::npos) << table;
}

// From 2.4 on groups have names and ranks, which tell groups of one name apart.
TEST_F(Meetings, AreAllFoundWhereGroupsHaveNames) {
  for (const Torch torch : kAll) {
    if (torch < Torch::k2_4) continue;
    for (const Names names : {Names::kUnique, Names::kShared}) {
      for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
        const Tally tally = tally_of_all({.torch = torch, .stages = 4, .tensor = 2, .data = 2,
                                          .sends = sends, .names = names});
        EXPECT_EQ(tally.found, tally.meetings) << kVersions[static_cast<int>(torch)];
        EXPECT_EQ(tally.counted, 0U);
      }
    }
  }
}

// Rank 0 takes twice its 1,000 us, four times an iteration: the others are late as it is.
class SlowRank : public Meetings, public ::testing::WithParamInterface<Torch> {
 protected:
  void expect_all_late(const char* kind, Job what, std::int64_t least) {
    what.torch = GetParam();
    SCOPED_TRACE(fmt::format("{} of {} ranks, {}, {}", kind, what.stages * what.tensor * what.data,
                             what.sends == Sends::kBatched ? "batched" : "single",
                             what.groups == Groups::kOne ? "one group" : "a group a pair"));
    workload::JobProgram job = program_of(Recording(what), workload::Window::kIterations);
    const auto before = workload::repeat_alone(job, device_).value();
    workload::apply(workload::parse_what_if("compute@0=0.5").value(), job);
    const auto after = workload::repeat_alone(job, device_).value();
    for (std::size_t rank = 0; rank < after.ranks.size(); ++rank) {
      const Duration later = mean(after.ranks[rank]) - mean(before.ranks[rank]);
      EXPECT_GT(later, std::chrono::microseconds(least)) << "rank " << rank;
      EXPECT_LE(later, std::chrono::microseconds(4'000)) << "rank " << rank;
    }
  }

 private:
  static Duration mean(const workload::RankReplay& rank) {
    Duration sum{};
    for (const Duration iteration : rank.simulated) sum += iteration;
    return sum / static_cast<std::int64_t>(rank.simulated.size());
  }
};

// Forward each stage is 2,000 later; backward too, less what the second micro-batch came later than
// the first's end.
TEST_P(SlowRank, DelaysItsPipeline) {
  for (const std::uint32_t stages : {2, 4, 8}) {
    for (const Sends sends : {Sends::kSingle, Sends::kBatched}) {
      for (const Groups groups : {Groups::kOne, Groups::kPerNeighbour}) {
        expect_all_late("pipeline", {.stages = stages, .sends = sends, .groups = groups}, 3'700);
      }
    }
  }
}

// An all-reduce follows each kernel, or all four: 4,000 less what the others begin later, which is
// up to 13 in a tensor group, up to 97 a replica.
TEST_P(SlowRank, DelaysItsTensorAndDataGroups) {
  for (const std::uint32_t ranks : {2, 4}) {
    expect_all_late("tensor group", {.stages = 1, .tensor = ranks}, 4'000 - 14 * ranks);
    expect_all_late("data group", {.stages = 1, .data = ranks}, 4'000 - 98 * ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, SlowRank, ::testing::ValuesIn(kAll), [](const auto& version) {
  std::string name = kVersions[static_cast<int>(version.param)];
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace bubblesim::run

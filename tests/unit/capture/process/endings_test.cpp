// However a job ends, it ends as it would have, and the file holds what could be saved.
#include <elf.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/capture/process/job_process.hpp"

namespace bubblesim::capture {
namespace {

using Endings = JobTest;
using Names = std::vector<std::string>;
using Fork = JobTest;
using Failures = JobTest;
using ::testing::AnyOf, ::testing::Contains, ::testing::Each, ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(Endings, TheCodeOfExitIsTheJobsOwn) {
  run({"init", "traced", "launch:100", "exit:42"});
  EXPECT_EQ(end.code, 42) << end.error;
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST_F(Endings, ByQuickExitWholeChunksAreLeft) {
  run({"init", "traced", "launch:5000", "sleep:1200", "quit:7"});
  EXPECT_EQ(end.code, 7) << end.error;
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_EQ(recorded.kernels("kernel"), 5000U);
  EXPECT_EQ(recorded.file_counters.count("btr_end_missing"), 1U);
}

TEST_F(Endings, KilledWholeChunksAreLeft) {
  run({"init", "traced", "launch:20000", "sleep:1200", "rate:300:1000", "kill"});
  EXPECT_EQ(end.signal, SIGKILL);
  const Recorded recorded = read_recording(folder.file("rank0.recording.btr"));
  EXPECT_GE(recorded.kernels("kernel"), 20000U);
  EXPECT_LE(recorded.kernels("kernel"), 20300U);
  EXPECT_EQ(recorded.file_counters.count("btr_chunks_malformed"), 0U);
  EXPECT_EQ(recorded.trace.device.name, "NVIDIA Fake 9000");
}

TEST_F(Endings, AtOnceWhileCuptiIsStillBeingSetUp) {
  succeed({"init", "launch:3", "sleep:100"}, {{"FAKE_CUPTI", "subscribe_ms=500"}});
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, AtOnceAfterInitialisation) { succeed({"init"}); }

TEST_F(Endings, BeforeTheTimeOfTheStartHasCome) {
  succeed({"init", "launch:3"}, {{kEnvStart, "3600"}});
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, WithoutACudaCallNoFileIsLeft) {
  succeed({"init", "traced"});
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(folder.files(), Names{});
}

TEST_F(Endings, OfTheContextFlushWhatItHeld) {
  succeed({"init", "traced", "launch:100", "sleep:20", "destroy", "launch:50"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 150U);
}

TEST_F(Endings, OfTheLibraryByDlcloseDoNotHappen) {
  succeed({"dlclose", "init", "traced", "launch:100"});
  // Recording began before there was a driver and failed; what counts is that nothing crashed.
}

TEST_F(Endings, WithAFlushThatTakesLong) {
  succeed({"init", "traced", "launch:100", "sleep:600"}, {{"FAKE_CUPTI", "flush_ms=300"}});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

// Children of a recorded process: everything is off in them, and the parent records on.

/// A child of a fork has no thread whose stack LeakSanitizer could search: what only the writer
/// held would count as leaked.
Variables without_leak_check(Variables variables) {
  variables["ASAN_OPTIONS"] = "detect_leaks=0";
  return variables;
}

TEST_F(Fork, AChildThatExitsHarmsNeitherItselfNorTheRecording) {
  end = run_job({"init", "traced", "launch:100", "fork:exit", "launch:100",
                              "fork:quit", "launch:100"},
                             without_leak_check(recording_to(folder)));
  EXPECT_EQ(end.code, 0) << end.error;
  ASSERT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 300U);
}

TEST_F(Fork, ManyWorkersAtOnceWhileItIsRecorded) {
  succeed({"init", "traced", "launch:5000", "workers:8", "launch:5000", "workers:8"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 10000U);
}

TEST_F(Fork, OfAnIdleProcessLeavesItIdle) {
  EXPECT_EQ(run_job({"init", "fork:quit", "workers:4"}, {}).code, 0);
}

TEST_F(Fork, AChildProgramThatIsAskedTooGetsAFileOfItsOwn) {
  succeed({"init", "traced", "launch:10", "spawn:init+traced+launch=20"});
  const Names files = folder.files();
  ASSERT_EQ(files.size(), 2U);  // the child ends first: rank0.btr is its
  EXPECT_EQ(files[0], "rank0.btr");
  EXPECT_EQ(read_recording(folder.file(files[0])).kernels("kernel"), 20U);
  EXPECT_EQ(read_recording(folder.file(files[1])).kernels("kernel"), 10U);
}

TEST_F(Fork, AChildProgramThatIsNotAskedStaysIdle) {
  JobProcess job({"init", "say:here", "hear", "launch:10", "spawn:init+launch=20", "launch:10"},
                 {});
  ASSERT_TRUE(job.says("here"));
  ASSERT_TRUE(job.start(folder.path()));
  (void)job.await(RecorderState::kRecording);
  job.tell();
  end = job.wait();
  EXPECT_EQ(end.code, 0) << end.error;
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
}

TEST_F(Fork, ALauncherThatUsesNoGpuLeavesRankZeroToItsWorker) {
  // The launcher has no rank and asks CUDA how many devices there are, so it is recorded as well.
  succeed({"init", "traced", "spawn:init+traced+launch=20"});
  ASSERT_EQ(folder.files(), Names{"rank0.btr"});
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
}

TEST_F(Fork, AnExecIsInjectedAnewAndLeavesTheChunksOfTheProgramBefore) {
  succeed({"init", "traced", "launch:1000", "sleep:1200", "exec:init+traced+launch=20"});
  ASSERT_EQ(folder.files(), (Names{"rank0.btr", "rank0.recording.btr"}));
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 20U);
  EXPECT_EQ(read_recording(folder.file("rank0.recording.btr")).kernels("kernel"), 1000U);
}

// Whatever fails, the job goes on, one line says why, and what was recorded is kept.
struct Refused {
  std::string name, why;
  Variables more;
  std::vector<std::string> verbs{"init", "launch:10", "sleep:300"};
};
class Refusals : public JobTest, public testing::WithParamInterface<Refused> {};

// The job ends well, says one line and leaves no file.
TEST_P(Refusals, AreSaidAndLeaveNoFile) {
  succeed(GetParam().verbs, GetParam().more);
  EXPECT_EQ(folder.files(), Names{});
  EXPECT_TRUE(end.error.starts_with("bubblesim capture: cannot start: ")) << end.error;
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
  EXPECT_THAT(end.error, HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(Failures, Refusals, testing::Values(
    Refused{"AnotherProfilerIsNamedAndLeftAlone", "Nsight Systems has CUPTI in this process",
            {{"FAKE_CUPTI", "subscribe=39,holder=Nsight Systems"}}},
    Refused{"WithoutADriver", "is there a driver", {}, {"inject:1", "sleep:300"}},
    Refused{"WithoutCupti", "/nowhere/libcupti.so", {{kEnvCupti, "/nowhere/libcupti.so"}}},
    Refused{"OfAKindThatNoRecordingCanDoWithout", "CONCURRENT_KERNEL",
            {{"FAKE_CUPTI", "fail_kind=10,fail_with=14"}}},
    Refused{"OfPermission", "does not allow", {{"FAKE_CUPTI", "subscribe=35"}}},
    Refused{"OfTheRequestInTheEnvironment", kEnvDuration, {{kEnvDuration, "soon"}}},
    Refused{"OfAFolderThatCannotBeMade", "/proc/nothing/here",
            {{kEnvOutput, "/proc/nothing/here"}}}),
    [](const auto& row) { return row.param.name; });

TEST_F(Failures, WithStderrClosedNothingElseIsWrittenTo) {
  succeed({"closed_stderr", "init", "launch:10", "sleep:200"}, {{"FAKE_CUPTI", "subscribe=39"}});
}

TEST_F(Failures, OfTheDiskEndTheRecordingAndKeepTheChunks) {
  succeed({"limit:60000", "init", "traced", "launch:3000", "sleep:700", "launch:200000",
          "sleep:700", "untraced", "launch:10"});
  EXPECT_THAT(end.error, HasSubstr("cannot write: File too large"));
  EXPECT_THAT(end.error, HasSubstr("lost: "));
  ASSERT_EQ(folder.files(), Names{"rank0.recording.btr"});
  EXPECT_GE(read_recording(folder.file("rank0.recording.btr")).kernels("kernel"), 3000U);
}

TEST_F(Failures, OfTheDiskEndRecordingsThatSignalsWouldRepeat) {
  JobProcess job({"limit:60000", "init", "traced", "launch:200000", "say:here", "hear"},
                 recording_to(folder, {{kEnvLast, "60s"}, {kEnvSignal, "USR2"}}));
  ASSERT_TRUE(job.says("here"));
  ASSERT_EQ(::kill(job.pid(), SIGUSR2), 0);
  EXPECT_THAT(job.await(RecorderState::kFailed).message, HasSubstr("cannot write"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(job.status()->state, RecorderState::kFailed);
  job.tell();
  EXPECT_EQ(job.wait().code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.file("signal-2")));
}

TEST_F(Failures, OfTheDeviceEndTheRecordingAndKeepTheFile) {
  succeed({"init", "traced", "launch:100", "untraced", "launch:10"},
          {{"FAKE_CUPTI", "fatal_after=100"}});
  EXPECT_THAT(end.error, HasSubstr("the fake device fell off the bus"));
  EXPECT_EQ(read_recording(folder.file("rank0.btr")).kernels("kernel"), 100U);
}

TEST_F(Failures, OfStoppingAreCounted) {
  const Recorded recorded = record({"init", "traced", "launch:100"},
                                   {{"FAKE_CUPTI", "stop_fails"}});
  EXPECT_EQ(recorded.kernels("kernel"), 100U);
  EXPECT_EQ(recorded.trace.counters.count("capture_stop_incomplete"), 1U);
}

TEST_F(Failures, TwoCallsOfTheEntryPointAreOne) {
  succeed({"init", "inject:3", "traced", "launch:100"});
  EXPECT_EQ(folder.files(), Names{"rank0.btr"});
}

TEST_F(Failures, SignalsNeverReachTheRecordersThreads) {
  succeed({"init", "traced", "launch:10", "signals:300"});
}

// The shared object as a loader sees it: what it shows. What it needs:
// tests/unit/capture/live/library_test.cpp.

/// The sections of a 64-bit ELF file that say how it is loaded.
class ElfFile {
 public:
  explicit ElfFile(const char* path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  [[nodiscard]] bool stays_loaded() const {
    for (const Elf64_Dyn& entry : table<Elf64_Dyn>(SHT_DYNAMIC)) {
      if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_NODELETE) != 0;
    }
    return false;
  }
  [[nodiscard]] std::vector<std::string> shown() const {
    std::vector<std::string> names;
    for (const Elf64_Sym& symbol : table<Elf64_Sym>(SHT_DYNSYM)) {
      if (symbol.st_shndx != SHN_UNDEF) names.push_back(text(SHT_DYNSYM, symbol.st_name));
    }
    return names;
  }

 private:
  template <class T>
  [[nodiscard]] std::vector<T> read(std::size_t offset, std::size_t count) const {
    std::vector<T> items(count);
    if (offset + count * sizeof(T) <= bytes_.size()) {
      std::memcpy(items.data(), bytes_.data() + offset, count * sizeof(T));
    }
    return items;
  }
  [[nodiscard]] std::vector<Elf64_Shdr> sections() const {
    const auto header = read<Elf64_Ehdr>(0, 1).front();
    return read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  }
  [[nodiscard]] Elf64_Shdr section(Elf64_Word type) const {
    for (const Elf64_Shdr& section : sections()) {
      if (section.sh_type == type) return section;
    }
    return {};
  }
  template <class T>
  [[nodiscard]] std::vector<T> table(Elf64_Word type) const {
    const Elf64_Shdr found = section(type);
    return read<T>(found.sh_offset, found.sh_size / sizeof(T));
  }
  [[nodiscard]] std::string text(Elf64_Word of, std::size_t offset) const {
    return bytes_.data() + sections()[section(of).sh_link].sh_offset + offset;
  }

  std::vector<char> bytes_;
};

TEST(Library, ShowsItsEntryPointsAndNothingElse) {
  const auto shown = ElfFile(CAPTURE_LIBRARY).shown();
  EXPECT_THAT(shown, Each(AnyOf("InitializeInjection", StartsWith("InitializeInjectionNvtx"),
                                StartsWith("ncclProfiler_v"))));
  for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2", "ncclProfiler_v4",
                           "ncclProfiler_v5"}) {
    EXPECT_THAT(shown, Contains(name));
  }
}

TEST(Library, CannotBeUnloaded) { EXPECT_TRUE(ElfFile(CAPTURE_LIBRARY).stays_loaded()); }

}  // namespace
}  // namespace bubblesim::capture

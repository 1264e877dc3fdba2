// What a job's environment becomes, and which library goes into it.
#include <gmock/gmock.h>

#include <filesystem>

#include "capture/control/job_environment.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf, ::testing::HasSubstr;

constexpr const char* kLibrary = "/opt/bubblesim/lib/libbubblesim_capture.so";

JobSettings recording() {
  JobSettings settings;
  settings.library = kLibrary;
  settings.request.emplace();
  settings.request->output = "/data/run";
  return settings;
}

TEST(JobEnvironment, NamesTheLibraryThriceAndTheRequest) {
  const auto made = must(job_environment({{"HOME", "/home/u"}}, recording()));
  const Variables expected{{"HOME", "/home/u"},
                           {"CUDA_INJECTION64_PATH", kLibrary},
                           {"NVTX_INJECTION64_PATH", kLibrary},
                           {"NCCL_PROFILER_PLUGIN", kLibrary},
                           {kEnvStart, "now"},
                           {kEnvOutput, "/data/run"},
                           {kEnvGraphs, "node"},
                           {kEnvMemory, "1"},
                           {kEnvReaders, "owner"},
                           {kEnvDetail, "full"},
                           {kEnvNames, "plain"},
                           {kEnvCount, "ranges"},
                           {kEnvSignal, "none"}};
  EXPECT_EQ(made.variables, expected);
  EXPECT_TRUE(made.notes.empty());
}

TEST(JobEnvironment, IdleLeavesNoRequestNotEvenAnOldOne) {
  JobSettings idle;
  idle.library = kLibrary;
  const auto made = must(job_environment({{kEnvStart, "now"}, {kEnvOutput, "/old"}}, idle));
  EXPECT_EQ(made.variables.count(kEnvStart), 0U);
  EXPECT_EQ(made.variables.count(kEnvOutput), 0U);
}

TEST(JobEnvironment, AnOldDurationDoesNotEndANewRecording) {
  const auto made = must(job_environment({{kEnvDuration, "1s"}}, recording()));
  EXPECT_EQ(made.variables.count(kEnvDuration), 0U);
}

TEST(JobEnvironment, AnotherToolsCudaInjectionIsNamedAndRefused) {
  EXPECT_THAT(
      error_of(job_environment({{"CUDA_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so"}},
                               recording()))
          .text(),
      AllOf(HasSubstr("CUDA_INJECTION64_PATH"), HasSubstr("/opt/nsight/libToolsInjection64.so")));
}

TEST(JobEnvironment, OurOwnLibraryOfAnOuterCaptureIsReplaced) {
  const auto made = must(job_environment(
      {{"CUDA_INJECTION64_PATH", "/elsewhere/libbubblesim_capture.so"}}, recording()));
  EXPECT_EQ(made.variables.at("CUDA_INJECTION64_PATH"), kLibrary);
}

TEST(JobEnvironment, OtherToolsOfNvtxAndNcclKeepTheirPlaceWithANote) {
  const auto made = must(job_environment(
      {{"NVTX_INJECTION64_PATH", "/n.so"}, {"NCCL_PROFILER_PLUGIN", "inspector"}}, recording()));
  EXPECT_EQ(made.variables.at("NVTX_INJECTION64_PATH"), "/n.so");
  EXPECT_EQ(made.variables.at("NCCL_PROFILER_PLUGIN"), "inspector");
  EXPECT_THAT(made.notes, ::testing::ElementsAre(HasSubstr("/n.so"), HasSubstr("inspector")));
}

class Library : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return temp_.write(name, text);
  }
  const TempFolder temp_;
  const fs::path folder_{temp_.path()};
};

TEST_F(Library, IsFoundBesideTheInstalledProgramAndInABuildTree) {
  fs::create_directories(folder_ / "bin");
  const std::string installed = write("lib/libbubblesim_capture.so", "\x7f" "ELF");
  EXPECT_EQ(find_library((folder_ / "bin").string(), ""), installed);
  const std::string built =
      write("build/capture/record/process/libbubblesim_capture.so", "\x7f" "ELF");
  fs::create_directories(folder_ / "build/sim/app");
  EXPECT_EQ(find_library((folder_ / "build/sim/app").string(), ""), built);
}

TEST_F(Library, ThatIsNowhereListsWhereItWasLookedFor) {
  EXPECT_THAT(error_of(find_library((folder_ / "bin").string(), "")).text(),
              AllOf(HasSubstr((folder_ / "lib").string()), HasSubstr("--library")));
}

TEST_F(Library, ThatIsNamedMustBeASharedObject) {
  EXPECT_THAT(find_library("", (folder_ / "no.so").string()).error().text(),
              HasSubstr("no such file"));
  EXPECT_THAT(find_library("", folder_.string()).error().text(), HasSubstr("found no file"));
  EXPECT_THAT(find_library("", write("text.so", "hello")).error().text(),
              HasSubstr("no shared object"));
  const std::string good = write("good.so", "\x7f" "ELF...");
  EXPECT_EQ(find_library("", good), good);
}

}  // namespace
}  // namespace bubblesim::capture

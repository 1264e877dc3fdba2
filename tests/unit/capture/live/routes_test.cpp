// By whatever route a program finds the driver's functions, its launches pass the gate on their
// way.
// A probe stands in the gate's place and writes down what it is told.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/capture/live/job_run.hpp"
#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture {
namespace {

using testing::ElementsAre, testing::IsEmpty;

/// A run of a job with the probe.
struct Probed {
  TempFolder folder;
  Variables variables = driver_environment(folder.path("driver"));

  Probed() {
    variables["LD_PRELOAD"] = PROBE_GATE;
    variables["BUBBLESIM_PROBE"] = folder.path("probe");
  }
  int run(std::vector<std::string> words) {
    const bool linked = words.front() == "linked";
    words.insert(words.begin(), linked ? LIVE_JOB_LINKED : LIVE_JOB);
    return RunningJob(words, variables).wait();
  }
  std::vector<std::string> told() const { return lines_of_file(folder.path("probe")); }
  std::vector<std::string> reached() const { return driver_calls(folder.path("driver")); }
};

class Routes : public testing::TestWithParam<const char*> {};

TEST_P(Routes, EveryLaunchPassesOnceAndReachesTheDriverInOrder) {
  Probed job;
  EXPECT_EQ(job.run({GetParam(), "launch:2", "own:1", "copy:1", "launch:1"}), 0);
  EXPECT_THAT(job.told(), ElementsAre("kernel 2 32 1", "kernel 2 32 1", "kernel 2 32 1 own",
                                      "copy 0 0 1", "kernel 2 32 1"));
  EXPECT_THAT(job.reached(),
              ElementsAre("cuLaunchKernel", "cuLaunchKernel", "cuLaunchKernel_ptsz",
                          "cuMemcpyHtoDAsync_v2", "cuLaunchKernel"));
}

TEST_P(Routes, WithoutAGateNothingIsToldAndAllReachesTheDriver) {
  Probed job;
  job.variables.erase("BUBBLESIM_PROBE");
  EXPECT_EQ(job.run({GetParam(), "launch:2", "own:1", "copy:1"}), 0);
  EXPECT_THAT(job.reached(), ElementsAre("cuLaunchKernel", "cuLaunchKernel", "cuLaunchKernel_ptsz",
                                         "cuMemcpyHtoDAsync_v2"));
}

TEST_P(Routes, AHeldLaunchDoesNotReachTheDriver) {
  Probed job;
  job.variables["BUBBLESIM_PROBE_HOLD"] = job.folder.path("go");
  const bool linked = std::string(GetParam()) == "linked";
  RunningJob running({linked ? LIVE_JOB_LINKED : LIVE_JOB, GetParam(), "launch:1", "copy:1"},
                     job.variables);
  EXPECT_TRUE(becomes_true([&] { return job.told().size() == 1; }));
  EXPECT_THAT(job.reached(), IsEmpty());
  std::ofstream(job.folder.path("go")) << "go";
  EXPECT_EQ(running.wait(), 0);
  EXPECT_THAT(job.reached(), ElementsAre("cuLaunchKernel", "cuMemcpyHtoDAsync_v2"));
}

// v1: cuGetProcAddress of CUDA 11, found by dlsym; chain: cuGetProcAddress asked for by itself.
INSTANTIATE_TEST_SUITE_P(All, Routes,
                         testing::Values("linked", "dlsym", "default", "v1", "v2", "chain"),
                         [](const auto& route) { return std::string(route.param); });

struct Launches : testing::Test { Probed job; };

TEST_F(Launches, OfEveryKindSayWhatTheyPutOnTheDevice) {
  EXPECT_EQ(job.run({"v2", "configured:1", "cooperative:1", "memset:1", "nccl:1"}), 0);
  EXPECT_THAT(job.told(), ElementsAre("kernel 6 128 1", "kernel 5 32 1", "memset 0 0 1",
                                      "collective 2 32 1"));
}

TEST_F(Launches, AGraphsKernelsAreCountedWithThoseOfItsChildGraph) {
  EXPECT_EQ(job.run({"v2", "graph:2"}), 0);
  // Two kernel nodes and one of the child graph, of 10 blocks each.
  EXPECT_THAT(job.told(), ElementsAre("kernel 30 64 3", "kernel 30 64 3"));
  EXPECT_THAT(job.reached(),
              ElementsAre("cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphLaunch"));
}

TEST_F(Launches, IntoAStreamThatCapturesAreNotGated) {
  EXPECT_EQ(job.run({"v2", "capture:3", "launch:1"}), 0);
  EXPECT_THAT(job.told(), ElementsAre("kernel 2 32 1"));
  EXPECT_EQ(job.reached().size(), 4U);
}

TEST_F(Launches, OfADriverThatHasTheFirstLookupOnlyAreSeen) {
  job.variables["LD_LIBRARY_PATH"] = OLD_DRIVER_FOLDER;
  EXPECT_EQ(job.run({"v1", "launch:1"}), 0);
  EXPECT_EQ(job.run({"dlsym", "launch:1"}), 0);
  EXPECT_EQ(job.told().size(), 2U);
}

TEST_F(Launches, OfForkedAndExecutedProcessesAreSeenToo) {
  EXPECT_EQ(job.run({"dlsym", "launch:1", "fork:1", "exec", "launch:1"}), 0);
  EXPECT_EQ(job.told().size(), 3U);
  EXPECT_EQ(job.reached().size(), 3U);
}

TEST_F(Launches, WithoutADriverNoFunctionIsFound) {
  job.variables.erase("LD_LIBRARY_PATH");
  EXPECT_EQ(job.run({"default", "launch:1"}), 90);  // as the job says that it found none
  EXPECT_THAT(job.told(), IsEmpty());
}

// The loader resolves RTLD_NEXT by who asks: a preloaded dlsym that called on would be the asker.
TEST(Lookups, OfOtherNamesAreAnsweredAsWithoutTheGate) {
  Probed job;
  job.variables.erase("FAKE_DRIVER_LOG");
  const int plain = RunningJob({"/bin/sh", "-c", "ls / | sort | head -1 >/dev/null"},
                               job.variables).wait();
  EXPECT_EQ(plain, 0);
  EXPECT_THAT(job.told(), IsEmpty());
}

}  // namespace
}  // namespace bubblesim::capture

// mpirun -n N bubblesim sweep, with the real mpirun: the same results on any number of ranks, one
// killed amid its runs, faults that are told once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

// Ranks share two cores and a container; leaks at their ends are Open MPI's.
constexpr const char* kSetting =
    "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent= "
    "TMPDIR=\"$PWD/tmp\" ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\"; mkdir -p tmp; ";
constexpr const char* kMpirun =
    "timeout -k 10 240 mpirun --oversubscribe --bind-to none ";

class MpiSweep : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun";
    place.write("kernels.csv",
                "Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n");
    place.write("sweep.json", R"({"name": "small", "repetitions": 6,
      "axes": [{"pointer": "/training/jitter_cv", "values": [0, 0.1]}],
      "base": {"name": "small", "duration": "300ms",
               "training": {"trace": "traces/samples/training"},
               "fillers": [{"name": "batch", "mode": "offline", "memory": "1GB",
                            "program": {"kernel_table": "kernels.csv"}}],
               "policies": ["exclusive", "mps"]}})");
  }

  [[nodiscard]] Outcome ranks(int count, const std::string& arguments,
                              const std::string& options = "") const {
    return place.shell(std::string(kSetting) + kMpirun + options + " -n " +
                       std::to_string(count) + " bubblesim sweep sweep.json " + arguments);
  }
  [[nodiscard]] std::string exported(const std::string& store) const {
    const Outcome outcome = place.bubblesim("results " + store + " export --format csv");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> lines = lines_of(outcome.out);
    if (!lines.empty()) std::sort(lines.begin() + 1, lines.end());
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  const Workplace place;
};

// 12 runs of two policies: a heading and 24 rows.
TEST_F(MpiSweep, GivesTheSameBytesOnAnyNumberOfRanksAndThreads) {
  ASSERT_EQ(place.bubblesim("sweep sweep.json --threads 2 --store alone.db").code, 0);
  const std::string expected = exported("alone.db");
  EXPECT_EQ(lines_of(expected).size(), 25U);
  struct Case {
    int ranks;
    int threads;
  };
  for (const Case& at : {Case{1, 1}, Case{2, 1}, Case{2, 2}, Case{4, 1}}) {
    const std::string store =
        "r" + std::to_string(at.ranks) + "t" + std::to_string(at.threads) + ".db";
    const Outcome outcome =
        ranks(at.ranks, "--threads " + std::to_string(at.threads) + " --store " + store);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("12 runs, 0 stored before, 12 done now"));
    EXPECT_EQ(exported(store), expected) << at.ranks << " ranks, " << at.threads << " threads";
    EXPECT_EQ(place.bubblesim("results " + store + " check").code, 0);
  }
}

// Rank 1 is killed when the first run is told of; mpirun's exit code is no use then.
TEST_F(MpiSweep, AKilledRankCostsNothingThatOthersCannotDo) {
  ASSERT_EQ(place.bubblesim("sweep sweep.json --threads 2 --store alone.db").code, 0);
  place.write("rank.sh",
              "sweep='bubblesim sweep sweep.json --threads 1 --store killed.db --json'\n"
              "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] || exec $sweep\n"
              "$sweep & worker=$!\n"
              "for i in $(seq 2000); do grep -q '\"event\":\"run\"' log.json && break; "
              "sleep 0.02; done\n"
              "kill -KILL $worker; wait; kill -KILL $$\n");
  const Outcome outcome = place.shell(std::string(kSetting) + kMpirun +
                                      "--enable-recovery -n 3 sh rank.sh >log.json");
  EXPECT_THAT(place.read("log.json"), HasSubstr(R"("event":"end")")) << outcome.err;
  EXPECT_EQ(exported("killed.db"), exported("alone.db")) << outcome.err;
}

// Without --enable-recovery mpirun ends all ranks with the first; what was finished is stored.
TEST_F(MpiSweep, EndedWithARankItGoesOnWhereItStopped) {
  ASSERT_EQ(place.bubblesim("sweep sweep.json --threads 2 --store alone.db").code, 0);
  place.write("rank.sh",
              "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] && { sleep 2; kill -KILL $$; }\n"
              "exec bubblesim sweep sweep.json --threads 1 --store ended.db\n");
  const Outcome ended =
      place.shell(std::string(kSetting) + kMpirun + "-n 2 sh rank.sh");
  EXPECT_NE(ended.code, 0);
  const Outcome again = ranks(2, "--threads 1 --store ended.db");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(exported("ended.db"), exported("alone.db"));
}

TEST_F(MpiSweep, AFaultIsToldOnceAndEndsAllRanks) {
  const Outcome outcome = ranks(3, "--set /duration=0ms --store none.db");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  std::size_t told = 0;
  for (const std::string& line : lines_of(outcome.err)) {
    told += line.find("/duration") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1U) << outcome.err;
}

// Each rank runs by itself then, as asked for: here two shards.
TEST_F(MpiSweep, OffEachProcessIsAlone) {
  const Outcome outcome = place.shell(
      std::string(kSetting) + kMpirun +
      "-n 2 sh -c 'exec bubblesim sweep sweep.json --mpi off --threads 1 "
      "--shard $OMPI_COMM_WORLD_RANK/2 --store s$OMPI_COMM_WORLD_RANK.db'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(place.bubblesim("results merge s0.db s1.db -o all.db").code, 0);
  ASSERT_EQ(place.bubblesim("sweep sweep.json --threads 1 --store alone.db").code, 0);
  EXPECT_EQ(exported("all.db"), exported("alone.db"));
}

}  // namespace
}  // namespace bubblesim::app_test

// bubblesim capture from end to end: the program, the real recorder, a job whose driver and CUPTI
// are stand-ins (tests/fakes). The recorder is the one of the build tree, found by itself.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr, testing::Not;

// The verbs are those of tests/fakes/job/fake_verbs.hpp.
std::string job(const std::string& verbs) {
  return std::string(BUBBLESIM_FAKE_JOB) + " cupti:" + BUBBLESIM_FAKE_CUPTI + " init " + verbs;
}

class CaptureJob : public AtWorkplace {
 protected:
  /// What capture says of the recordings of a job that ends well.
  [[nodiscard]] Json recordings(const std::string& options, const std::string& verbs) const {
    const Outcome outcome =
        place.bubblesim("capture -o run --json " + options + "-- " + job(verbs));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(lines_of(outcome.out).back()).at("recordings");
  }
};

TEST_F(CaptureJob, ARecordedJobLeavesATimelineThatInspectReads) {
  const Json recording = recordings("", "traced:20000 launch:1000 exit:0").at(0);
  EXPECT_EQ(recording.at("kernels"), 1000);
  EXPECT_EQ(recording.at("calls"), 1000);
  EXPECT_EQ(recording.at("path"), place.path("run/rank0.btr"));
  EXPECT_EQ(recording.at("complete"), true);
  // Nothing else is left beside it.
  const std::filesystem::directory_iterator files(place.path("run"));
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  const Outcome inspected = succeed(place, "inspect run --json");
}

TEST_F(CaptureJob, TheFileOfARankCarriesItsNumber) {
  const Outcome outcome = place.shell("RANK=3 WORLD_SIZE=8 bubblesim capture -o run -- " +
                                      job("traced:20000 launch:10 exit:6"));
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(place.path("run/rank3.btr"))) << outcome.err;
}

// Of each GPU 200 kernels; a GPU's synchronisations are its own.
TEST_F(CaptureJob, AProcessWithTwoGpusIsTwoRanksOfOneFile) {
  const Json both = recordings("", "traced:20000 threads:4:100 gpus:5");
  ASSERT_EQ(both.size(), 2U);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const Json& recording = both.at(rank);
    EXPECT_EQ(recording.at("rank"), rank);
    EXPECT_EQ(recording.at("kernels"), 205);
    EXPECT_EQ(recording.at("calls"), rank == 0 ? 205 : 210);
    EXPECT_EQ(recording.at("path"), place.path("run/rank0.btr"));
  }
  const Outcome inspected = succeed(place, "inspect run --json");
  EXPECT_EQ(parse_json(inspected.out).at("job").at("ranks"), 2);
  EXPECT_THAT(inspected.out, HasSubstr("join_ranks_of_gpus_by_order"));
}

// The job marks 400 iterations of 2 ms with 10 kernels each.
TEST_F(CaptureJob, TheSameIterationsOfAllRanksAreRecordedLightlyAndUnderHashes) {
  const Json recording = recordings("--from-iteration 150 --iterations 3 --light --hash-names ",
                                    "sleep:300 mark_iterations:400:10")
                             .at(0);
  EXPECT_GE(recording.at("iterations"), 3);
  EXPECT_EQ(recording.at("calls"), 0);
  EXPECT_EQ(recording.at("copies"), 0);
  EXPECT_THAT(succeed(place, "inspect run --json").out, Not(HasSubstr("\"name\": \"kernel\"")));
}

TEST_F(CaptureJob, AFewOfEveryManyIterationsAreAFolderEach) {
  const Outcome outcome =
      place.bubblesim("capture -o run --from-iteration 100 --iterations 3 --every 150 -- " +
                      job("sleep:300 mark_iterations:600:5"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(place.path("run/iterations-100/rank0.btr"))) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(place.path("run/iterations-250/rank0.btr"))) << outcome.err;
  for (const auto& entry : std::filesystem::directory_iterator(place.path("run"))) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("iterations-"));
  }
}

TEST_F(CaptureJob, TheLastStretchIsWrittenWhenTheJobEnds) {
  const Json recording = recordings("--last 500ms ", "traced:20000 rate:300:5000").at(0);
  EXPECT_GT(recording.at("kernels"), 20);
  EXPECT_LT(recording.at("kernels"), 110);
}

TEST_F(CaptureJob, AKilledJobLeavesWhatWasWholeAndSaysThatTheEndIsMissing) {
  const Outcome outcome = place.bubblesim("capture -o run -- " +
                                          job("traced:20000 launch:20000 sleep:1500 kill"));
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.err, HasSubstr("btr_end_missing"));
  EXPECT_TRUE(std::filesystem::exists(place.path("run/rank0.btr")));
}

TEST_F(CaptureJob, ThatAnotherProfilerHoldsNamesItAndGoesOn) {
  const Outcome outcome =
      place.shell("FAKE_CUPTI='subscribe=39,holder=Nsight Systems' bubblesim capture -o run -- " +
                  job("launch:10 sleep:300 exit:0"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("nothing was recorded"));
  EXPECT_THAT(outcome.err, HasSubstr("Nsight Systems has CUPTI"));
}

/// Lines of a shell: wait for a status of the process in the file pid; attach to it.
std::string until(const std::string& status) {
  return "for i in $(seq 200); do\n"
         "  bubblesim capture status $(cat pid || echo 1) " + status + " && break; sleep 0.05\n"
         "done\n";
}
std::string attached(const std::string& options) {
  return "bubblesim capture attach $(cat pid) -o run " + options + " --wait --json\n"
         "code=$?; wait; exit $code";
}

// A task prolog of Slurm, or `env` of a pod: one variable, and the job can be attached to.
TEST_F(CaptureJob, AJobWhoseEnvironmentNamesTheLibraryAloneIsAttachedTo) {
  place.write("prolog.sh", "echo export CUDA_INJECTION64_PATH=" BUBBLESIM_CAPTURE_LIBRARY "\n");
  place.write("job.sh", "eval \"$(sh prolog.sh)\"\necho $$ >pid\nexec " +
                            job("traced:20000 launch:50 sleep:700 exit:0"));
  const Outcome outcome = place.shell(
      "sh job.sh &\n" + until(">seen 2>&1") + attached("--duration 300ms"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(parse_json(outcome.out).at(0).at("kernels"), 50) << outcome.err;
}

TEST_F(CaptureJob, OfAFewOfEveryManyIterationsAttachCollectsAll) {
  place.write("job.sh", "echo $$ >pid\nexec " + job("sleep:5000 mark_iterations:600:5"));
  const Outcome outcome = place.shell(
      "bubblesim capture --idle -- sh job.sh &\n" + until(">seen 2>&1") +
      attached("--from-iteration 100 --iterations 3 --every 150"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> paths;
  for (const Json& recording : parse_json(outcome.out)) paths.push_back(recording.at("path"));
  for (const char* folder : {"iterations-100", "iterations-250", "iterations-400"}) {
    EXPECT_THAT(paths, testing::Contains(HasSubstr(folder))) << outcome.err;
    const Outcome view = succeed(place, std::string("inspect run/") + folder + " --json");
    EXPECT_THAT(view.out, HasSubstr("bubblesim-capture"));  // joined
  }
}

TEST_F(CaptureJob, ASignalLeavesAFolderEach) {
  place.write("job.sh", "echo $$ >pid\nexec " + job("traced:20000 rate:1600:5000"));
  const Outcome outcome = place.shell(
      "bubblesim capture -o run --last 300ms --on-signal URG -- sh job.sh &\n" +
      until("2>&1 | grep -q recording") + "sleep 0.5; kill -URG $!; wait $!");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* folder : {"run/signal-1", "run/signal-2"}) {
    EXPECT_TRUE(std::filesystem::exists(place.path(std::string(folder) + "/rank0.btr")))
        << outcome.err;
  }
}

// What the process became does not handle the signal.
TEST_F(CaptureJob, ASignalIsNotForAProcessThatHasBecomeAnotherProgram) {
  place.write("job.sh", "echo $$ >pid\nexec " +
                            job("traced:20000 launch:50 sleep:1500 exec:sleep=6000"));
  const Outcome outcome = place.shell(
      "bubblesim capture -o run --last 1s --on-signal USR1 -- sh job.sh &\n" +
      until("2>&1 | grep -q recording") + "sleep 3; kill -USR1 $!; wait $!");
  EXPECT_NE(outcome.code, 128 + 10) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no process records now"));
}

TEST_F(CaptureJob, AnIdleJobIsRecordedOnRequest) {
  place.write("job.sh", "echo $$ >pid\nexec " + job("traced:20000 launch:500 sleep:700 exit:0"));
  const Outcome outcome = place.shell(
      "bubblesim capture --idle -- sh job.sh &\n" + until(">seen 2>&1") +
      attached("--duration 300ms"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json recordings = parse_json(outcome.out);
  ASSERT_EQ(recordings.size(), 1U) << outcome.out << outcome.err;
  EXPECT_EQ(recordings[0].at("kernels"), 500);
  EXPECT_TRUE(std::filesystem::exists(place.path("run/rank0.btr")));
}

}  // namespace
}  // namespace bubblesim::app_test

// What a second start does: only what is new or changed; and what does not change results at all.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;
using CrashingRun = AtWorkplace;
using FullDisk = AtWorkplace;

Json swept(const Workplace& place, const Json& sweep, const std::string& options = "") {
  write_sweep(place, sweep);
  const Outcome outcome =
      place.bubblesim("sweep sweep.json --threads 2 --store runs.db --json " + options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return last_event(outcome.out);
}

TEST(SweepAgain, ThreadsDoNotChangeResults) {
  const Workplace place;
  write_sweep(place, small_sweep(3));
  for (const char* threads : {"1", "2"}) {
    const Outcome outcome = place.bubblesim(std::string("sweep sweep.json --threads ") + threads +
                                            " --store " + threads + ".db");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_EQ(exported(place, "1.db"), exported(place, "2.db"));
}

// What was in the store and what ends afterwards is in another one, from which the sweep goes on.
TEST(SweepAgain, AStoreThatIsDeletedOrReplacedIsNoticedAndNothingIsLost) {
  for (const std::string other : {"", "another file"}) {
    const Workplace place;
    write_sweep(place, small_sweep(60));  // 120 runs
    RunningProgram sweep(place, "gone", "sweep sweep.json --threads 1 --store runs.db --json");
    ASSERT_TRUE(sweep.says(R"("event":"run")"));
    std::filesystem::remove(place.path("runs.db"));
    if (!other.empty()) place.write("runs.db", other);
    const Outcome ended = sweep.wait();
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("runs.db: was deleted, moved or replaced"),
                                 HasSubstr("is kept in runs.db.kept")));
    EXPECT_EQ(place.bubblesim("results runs.db.kept check").code, 0);
    const Outcome rest =
        place.bubblesim("sweep sweep.json --threads 1 --store runs.db.kept --json --limit 1");
    EXPECT_EQ(rest.code, 0) << rest.err;
    EXPECT_GT(last_event(rest.out)["stored"], 0) << rest.out;
  }
}

TEST(SweepAgain, ASecondProcessIsToldWhoDoesTheSame) {
  const Workplace place;
  Json sweep = small_sweep(1);
  sweep["base"]["duration"] = "3000s";
  write_sweep(place, sweep);
  const std::string command = "sweep sweep.json --threads 1 --store runs.db --json";
  RunningProgram first(place, "first", command);
  ASSERT_TRUE(first.says(R"("running":[{)"));
  const Outcome second = place.bubblesim(command);
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, testing::ContainsRegex("runs.db: is being filled by process [0-9]+ on .*"
                                                 "which does the same runs"));
  RunningProgram share(place, "share", command + " --shard 0/2");  // other runs, perhaps
  EXPECT_TRUE(share.says(R"("running":[{)"));
}

TEST(SweepAgain, OfTwoThatStartTogetherOneDoesTheRuns) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Workplace place;
    Json sweep = small_sweep(1);
    sweep["base"]["duration"] = "3000s";
    write_sweep(place, sweep);
    const std::string command = "sweep sweep.json --threads 1 --store runs.db --json";
    RunningProgram first(place, "first", command);
    RunningProgram second(place, "second", command);
    const std::string works = R"("running":[{)";
    EXPECT_NE(first.says(works), second.says(works));
  }
}

TEST(SweepAgain, OnlyRunsWhoseInputsChangedAreDone) {
  const Workplace place;
  Json sweep = small_sweep(2);
  EXPECT_EQ(swept(place, sweep)["done"], 4);
  EXPECT_EQ(swept(place, sweep)["done"], 0);
  sweep["axes"][0]["values"][1] = "time_slicing";  // one value of an axis: its 2 seeds
  const Json one_value = swept(place, sweep);
  EXPECT_EQ(one_value["stored"], 2);
  EXPECT_EQ(one_value["done"], 2);
  sweep["base"]["duration"] = "400ms";  // the base: everything
  EXPECT_EQ(swept(place, sweep)["done"], 4);
  sweep["repetitions"] = 3;  // one seed more of each
  EXPECT_EQ(swept(place, sweep)["done"], 2);
  EXPECT_EQ(swept(place, sweep, "--set /duration=500ms")["done"], 2) << "the third seed";
}

TEST(SweepAgain, ARunThatFailsIsKeptWithItsReasonAndTheOthersAreDone) {
  const Workplace place;
  Json sweep = small_sweep(1);
  // The sample job has GPUs 0 to 3: how many a trace has is known only when it is loaded.
  sweep["axes"].push_back(
      parse_json(R"({"pointer": "/fillers/encoder/gpus", "values": [[0], [7]]})"));
  write_sweep(place, sweep);
  const Outcome first = place.bubblesim("sweep sweep.json --threads 2 --store runs.db --json");
  EXPECT_EQ(first.code, 3) << first.out << first.err;
  EXPECT_EQ(last_event(first.out)["failed"], 2) << first.out;
  const Outcome failed = succeed(place, "results runs.db list --failed --json");
  const Json list = parse_json(failed.out);
  EXPECT_EQ(list["done"], 2) << failed.out;
  ASSERT_EQ(list["failed"].size(), 2U) << failed.out;
  EXPECT_THAT(list["failed"][0]["reason"].get<std::string>(), HasSubstr("found GPU 7"));
  const Outcome again = place.bubblesim("sweep sweep.json --threads 2 --store runs.db --json");
  EXPECT_EQ(again.code, 3) << "still not everything is done";
  EXPECT_EQ(last_event(again.out)["done"], 0) << "the same inputs fail the same way";
  const Outcome retried = place.bubblesim("sweep sweep.json --store runs.db --json --retry-failed");
  EXPECT_EQ(last_event(retried.out)["done"], 2) << retried.out;
}

// The sweeps that a user starts from: each is planned whole, and some of its runs are done, made
// short.

/// What makes each short, and how many runs are done: enough to meet every policy's kind.
const std::map<std::string, std::string> kShort{
    {"devices", "--set /duration=300ms --set /warmup=100ms --limit 2"},
    {"load-latency", "--set /duration=500ms --set /warmup=100ms --limit 2"},
    {"pipefill-scale",
     "--set /iterations=1 --set /training/synth/plan/global_batch=128 --limit 1"},
    {"policies", "--set /duration=500ms --set /warmup=100ms --limit 2"},
    {"specinf", "--set /duration=500ms --set /warmup=100ms --limit 2"}};

std::vector<std::string> sweep_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(BUBBLESIM_SOURCE_DIR "/configs/sweeps")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class SweepFile : public testing::TestWithParam<std::string> {};

TEST_P(SweepFile, RunsAndSaysWhatItAnswersAndHowLongItTakes) {
  const Workplace place;
  const std::string file = "configs/sweeps/" + GetParam() + ".json";
  const Json sweep = parse_json(place.read(file));
  EXPECT_EQ(sweep["name"], GetParam()) << "the store is called by it";
  std::string comment;
  for (const Json& line : sweep["comment"]) comment += line.get<std::string>() + " ";
  EXPECT_THAT(comment, AllOf(HasSubstr("Answers:"), HasSubstr(" of one core: "),
                             HasSubstr(" on two cores")));
  ASSERT_TRUE(kShort.contains(GetParam())) << "say in this test how it is made short";
  const Outcome done = place.bubblesim("sweep " + file + " --threads 2 --store runs.db --json " +
                                       kShort.at(GetParam()));
  ASSERT_EQ(done.code, 0) << done.out << done.err;
  const Json end = last_event(done.out);
  EXPECT_GE(end["done"], 1);
  EXPECT_THAT(comment, HasSubstr(" " + std::to_string(end["runs"].get<int>()) + " runs"));
}

INSTANTIATE_TEST_SUITE_P(Configs, SweepFile, testing::ValuesIn(sweep_files()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// Runs that end the process are found out, and the rest of the sweep is done without them.

/// The library's policy between two others, 2 seeds each.
void write_deadly(const Workplace& place, const std::string& policy) {
  Json sweep = small_sweep(2);
  sweep["axes"][0]["values"] = Json::array({"exclusive", policy, "mps"});
  write_sweep(place, sweep);
}

// Programs that die do so in a process of their own: no shell reports on them.
Outcome started(const Workplace& place, const std::string& options = "") {
  const std::string command =
      "sweep sweep.json --store runs.db --json --policy-library " BUBBLESIM_LIBRARIES
      "/libdeadly.so ";
  RunningProgram program(place, "deadly", command + options, "ulimit -c 0");
  return program.wait();
}

std::vector<std::string> journals(const Workplace& place) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(place.path(""))) {
    const std::string name = entry.path().filename().string();
    if (name.find(".running-") != name.npos) found.push_back(name);
  }
  return found;
}

std::vector<std::string> reasons(const Workplace& place) {
  const Outcome failed = succeed(place, "results runs.db list --failed --json");
  std::vector<std::string> all;
  const Json list = parse_json(failed.out);
  for (const Json& run : list["failed"]) all.push_back(run["reason"]);
  return all;
}

// Each of the 2 runs brings down one process, whatever else is in flight.
TEST_F(CrashingRun, IsRecordedAtTheNextStartAndTheRestIsDone) {
  write_deadly(place, "aborts");
  for (int start = 0; start < 2; ++start) {
    const Outcome died = started(place, "--threads 1");
    EXPECT_EQ(died.code, 128 + 6) << died.out << died.err;
    EXPECT_THAT(died.err, HasSubstr("brings the program down; started again, the sweep records"));
  }
  EXPECT_EQ(journals(place).size(), 2U);
  const Outcome last = started(place, "--threads 2");
  EXPECT_EQ(last.code, 3) << last.err;
  EXPECT_EQ(last_event(last.out)["failed"], 2) << last.out;
  EXPECT_EQ(last_event(last.out)["left"], 0) << last.out;
  EXPECT_THAT(reasons(place), testing::Each(HasSubstr("brought the program down")));
  EXPECT_EQ(reasons(place).size(), 2U);
  EXPECT_TRUE(journals(place).empty()) << "all is decided";
  EXPECT_EQ(started(place).code, 3) << "nothing is tried again";
  EXPECT_EQ(started(place, "--retry-failed").code, 128 + 6) << "unless asked for";
}

// Killed from outside, any run in flight may be the one: a third time is needed, alone.
TEST_F(CrashingRun, OneThatIsKilledIsTriedThreeTimesAndLastAlone) {
  Json sweep = small_sweep(1);
  sweep["axes"][0]["values"] = Json::array({"killed", "exclusive", "mps", "time_slicing"});
  write_sweep(place, sweep);
  EXPECT_EQ(started(place, "--threads 2").code, 128 + 9);
  EXPECT_EQ(started(place, "--threads 2").code, 128 + 9);
  EXPECT_EQ(started(place, "--threads 2").code, 128 + 9);
  const Outcome last = started(place, "--threads 2");
  EXPECT_EQ(last.code, 3) << last.err;
  EXPECT_THAT(reasons(place), testing::ElementsAre(AllOf(
                                  HasSubstr("in flight 3 times"), HasSubstr("alone"))));
  const Json end = last_event(last.out);
  EXPECT_EQ(end["stored"].get<int>() + end["done"].get<int>(), 4) << last.out;
}

/// The sample job under a policy of the library.
Outcome ran(const Workplace& place, const std::string& policy, const std::string& options = "") {
  const std::string samples = std::string(BUBBLESIM_SOURCE_DIR) + "/traces/samples/";
  const std::string command = "run " + samples + "training " + samples +
                              "inference.json.gz --duration 1s --policy " + policy +
                              " --policy-library " BUBBLESIM_LIBRARIES "/libdeadly.so " + options;
  RunningProgram program(place, "run", command, "ulimit -c 0");
  return program.wait();
}

TEST(CrashingPolicy, IsNamedWithItsCallAndTheSimulatedTime) {
  const Workplace place;
  const Outcome died = ran(place, "recurses");
  EXPECT_EQ(died.code, 128 + 11) << died.err;
  EXPECT_THAT(died.err, testing::ContainsRegex("SIGSEGV in policy recurses, call on_launch, at "
                                               "[1-9][0-9]* ns of simulated time"));
  EXPECT_THAT(ran(place, "aborts").err, HasSubstr("SIGABRT in policy aborts, call start"));
}

class LoopingPolicy : public AtWorkplace {};

TEST_F(LoopingPolicy, EndsARunThatNamesIt) {
  const Outcome ended = ran(place, "exclusive,loops", "--policy-timeout 200ms");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, testing::ContainsRegex("policy loops, call on_launch, at [1-9].* of "
                                                "simulated time: has not returned for 200ms"));
}

// A bound that calls keep changes nothing: the same bytes with and without.
TEST_F(LoopingPolicy, HasABoundThatOtherPoliciesDoNotFeel) {
  const Outcome bounded = ran(place, "tgs,mps", "--csv --policy-timeout 2s");
  EXPECT_EQ(bounded.code, 0) << bounded.err;
  EXPECT_EQ(bounded.out, ran(place, "tgs,mps", "--csv --policy-timeout 0s").out);
}

// What was finished before is stored, and the run is not tried again.
TEST_F(LoopingPolicy, EndsASweepInOrder) {
  Json sweep = small_sweep(1);
  sweep["axes"][0]["values"] = Json::array({"exclusive", "loops", "mps"});
  write_sweep(place, sweep);
  const Outcome ended = started(place, "--threads 1 --policy-timeout 200ms");
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("policy loops, call on_launch"),
                               HasSubstr("started again, the sweep records it as failed")));
  const Outcome rest = started(place);
  EXPECT_EQ(rest.code, 3) << rest.err;
  EXPECT_EQ(last_event(rest.out)["stored"], 1) << rest.out;
  EXPECT_EQ(last_event(rest.out)["failed"], 1) << rest.out;
  EXPECT_EQ(reasons(place).size(), 1U);
}

TEST_F(LoopingPolicy, DoesNotKeepASweepFromEndingAtTheSecondSignal) {
  Json sweep = small_sweep(1);
  sweep["axes"][0]["values"] = Json::array({"loops"});
  write_sweep(place, sweep);
  RunningProgram program(place, "deadly",
                         "sweep sweep.json --store runs.db --json --policy-timeout 0s "
                         "--policy-library " BUBBLESIM_LIBRARIES "/libdeadly.so");
  ASSERT_TRUE(program.says(R"("running":[{)"));
  program.send(SIGTERM);
  ASSERT_TRUE(program.says(R"("event":"stopping")"));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().code, 130);
}

TEST_F(CrashingRun, OneKillOfAWholeSweepMakesNothingFail) {
  write_sweep(place, small_sweep(4));
  RunningProgram sweep(place, "killed", "sweep sweep.json --threads 2 --store runs.db --json");
  ASSERT_TRUE(sweep.says(R"("event":"run")"));
  sweep.send(SIGKILL);
  (void)sweep.wait();
  EXPECT_EQ(last_event(succeed(place, "sweep sweep.json --store runs.db --json").out)["failed"], 0);
  EXPECT_TRUE(journals(place).empty());
}

// A disk without room: an error that says what became of the results, and a store that reads well.

// Files may grow to 256 blocks of 512 bytes: room for the tables and some runs, not for all.
TEST_F(FullDisk, IsAFaultThatSaysWhatIsKeptAndTheSweepGoesOnLater) {
  Json sweep = small_sweep(40);  // 80 runs
  sweep["base"]["duration"] = "300ms";
  write_sweep(place, sweep);
  const std::string command = "sweep sweep.json --threads 2 --store runs.db";
  const Outcome first = succeed(place, command + " --limit 4");
  RunningProgram full(place, "full", command, "trap '' XFSZ && ulimit -f 256");
  const Outcome outcome = full.wait();
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("runs.db"), HasSubstr("what was stored before is kept"),
                    HasSubstr("finished runs could not be stored, and will be run again")));
  EXPECT_EQ(place.bubblesim("results runs.db check").code, 0);
  const Outcome rest = succeed(place, command + " --json");
  const Json end = last_event(rest.out);
  EXPECT_GE(end["stored"], 4);
  EXPECT_EQ(end["stored"].get<int>() + end["done"].get<int>(), 80);
}

// What is wrong with a store is told before the first run.
TEST_F(FullDisk, AStoreThatIsDamagedOrNewerIsRefusedBeforeTheFirstRun) {
  write_sweep(place, small_sweep(1));
  place.write("damaged.db", "SQLite format 3" + std::string(2000, '#'));
  expect_fault(place, "sweep sweep.json --store damaged.db", HasSubstr("damaged.db"));
  place.write("text.db", "no store at all, but a text that somebody wrote");
  const Outcome text = place.bubblesim("sweep sweep.json --store text.db");
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, HasSubstr("is no results store"));
  EXPECT_EQ(place.read("text.db"), "no store at all, but a text that somebody wrote");
}

}  // namespace
}  // namespace bubblesim::app_test

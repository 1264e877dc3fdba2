// Runs that end the process are found out, and the rest of the sweep is done without them.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/conformance/sweep/running_program.hpp"
#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

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
TEST(CrashingRun, IsRecordedAtTheNextStartAndTheRestIsDone) {
  const Workplace place;
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
TEST(CrashingRun, OneThatIsKilledIsTriedThreeTimesAndLastAlone) {
  const Workplace place;
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

TEST(CrashingRun, OneKillOfAWholeSweepMakesNothingFail) {
  const Workplace place;
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
TEST(FullDisk, IsAFaultThatSaysWhatIsKeptAndTheSweepGoesOnLater) {
  const Workplace place;
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
TEST(FullDisk, AStoreThatIsDamagedOrNewerIsRefusedBeforeTheFirstRun) {
  const Workplace place;
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

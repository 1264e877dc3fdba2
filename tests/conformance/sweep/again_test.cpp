// What a second start does: only what is new or changed; and what does not change results at all.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/conformance/sweep/running_program.hpp"
#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

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

}  // namespace
}  // namespace bubblesim::app_test

// A disk without room: an error that says what became of the results, and a store that reads well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/sweep/running_program.hpp"
#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Files may grow to 256 blocks of 512 bytes: room for the tables and some runs, not for all.
TEST(FullDisk, IsAFaultThatSaysWhatIsKeptAndTheSweepGoesOnLater) {
  const Workplace place;
  Json sweep = small_sweep(40);  // 80 runs
  sweep["base"]["duration"] = "300ms";
  write_sweep(place, sweep);
  const std::string command = "sweep sweep.json --threads 2 --store runs.db";
  const Outcome first = place.bubblesim(command + " --limit 4");
  ASSERT_EQ(first.code, 0) << first.err;
  RunningProgram full(place, "full", command, "trap '' XFSZ && ulimit -f 256");
  const Outcome outcome = full.wait();
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("runs.db"), HasSubstr("what was stored before is kept"),
                    HasSubstr("finished runs could not be stored, and will be run again")));
  EXPECT_EQ(place.bubblesim("results runs.db check").code, 0);
  const Outcome rest = place.bubblesim(command + " --json");
  ASSERT_EQ(rest.code, 0) << rest.err;
  const Json end = last_event(rest.out);
  EXPECT_GE(end["stored"], 4);
  EXPECT_EQ(end["stored"].get<int>() + end["done"].get<int>(), 80);
}

// What is wrong with a store is told before the first run.
TEST(FullDisk, AStoreThatIsDamagedOrNewerIsRefusedBeforeTheFirstRun) {
  const Workplace place;
  write_sweep(place, small_sweep(1));
  place.write("damaged.db", "SQLite format 3" + std::string(2000, '#'));
  const Outcome damaged = place.bubblesim("sweep sweep.json --store damaged.db");
  EXPECT_EQ(damaged.code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("damaged.db"));
  place.write("text.db", "no store at all, but a text that somebody wrote");
  const Outcome text = place.bubblesim("sweep sweep.json --store text.db");
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, HasSubstr("is no results store"));
  EXPECT_EQ(place.read("text.db"), "no store at all, but a text that somebody wrote");
}

}  // namespace
}  // namespace bubblesim::app_test

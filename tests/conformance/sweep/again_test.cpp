// What a second start does: only what is new or changed; and what does not change results at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/sweep/sweep_place.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

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
  const Outcome failed = place.bubblesim("results runs.db list --failed --json");
  ASSERT_EQ(failed.code, 0) << failed.err;
  const Json list = parse_json(failed.out);
  EXPECT_EQ(list["done"], 2) << failed.out;
  ASSERT_EQ(list["failed"].size(), 2U) << failed.out;
  EXPECT_THAT(list["failed"][0]["reason"].get<std::string>(), HasSubstr("found GPU 7"));
  const Outcome again = place.bubblesim("sweep sweep.json --threads 2 --store runs.db --json");
  EXPECT_EQ(again.code, 3) << "still not everything is done";
  EXPECT_EQ(last_event(again.out)["done"], 0) << "the same inputs fail the same way";
  const Outcome retried =
      place.bubblesim("sweep sweep.json --store runs.db --json --retry-failed");
  EXPECT_EQ(last_event(retried.out)["done"], 2) << retried.out;
}

}  // namespace
}  // namespace bubblesim::app_test

// bubblesim calibrate: a fake GPU's constants as a device file that reads back; what is wrong with
// a call is said before anything starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

TEST(Calibrate, WhatAFakeGpuIsLikeBecomesADeviceFile) {
  const Workplace place;
  const Outcome made = place.bubblesim(
      "calibrate --fake --device h100 --fake-device a100-80gb --only latencies,copies "
      "-o mine.json --json");
  ASSERT_EQ(made.code, 0) << made.err;
  const Json constants = parse_json(made.out)["constants"];
  ASSERT_EQ(constants.size(), 6U);
  for (const Json& constant : constants) {
    EXPECT_FALSE(constant["measured"].is_null()) << constant["constant"];
  }
  const Json h100 = parse_json(place.read("mine.json"));
  EXPECT_THAT(h100["launch_latency"]["source"].get<std::string>(),
              HasSubstr("measured: bubblesim calibrate --fake"));
  EXPECT_THAT(h100["time_slice"]["source"].get<std::string>(),
              HasSubstr("tests/validation/h100/calibrate.txt"));
  // The file is a device again, with what was measured; nothing is left to find.
  const Outcome again = place.bubblesim(
      "calibrate --fake --device mine.json --fake-device a100-80gb --only latencies --json");
  ASSERT_EQ(again.code, 0) << again.err;
  const Json found = parse_json(again.out)["constants"];
  for (const Json& constant : found) {
    EXPECT_EQ(constant["measured"], constant["base"]) << constant["constant"];
  }
}

TEST(Calibrate, SlowdownsAreARowACell) {
  const Workplace place;
  const Outcome made =
      place.bubblesim("calibrate --fake --only contention --residuals residuals.csv");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("held out, never fitted"));
  EXPECT_THAT(place.read("residuals.csv"), HasSubstr("victim_class,victim_blocks"));
}

TEST(Calibrate, UnknownProbesAndDevicesAreNamed) {
  const Workplace place;
  const Outcome probe = place.bubblesim("calibrate --fake --only slice");
  EXPECT_EQ(probe.code, 2);
  EXPECT_THAT(probe.err, HasSubstr("slices"));
  const Outcome device = place.bubblesim("calibrate --fake --device h1000");
  EXPECT_EQ(device.code, 2);
  EXPECT_THAT(device.err, HasSubstr("h1000"));
}

}  // namespace
}  // namespace bubblesim::app_test

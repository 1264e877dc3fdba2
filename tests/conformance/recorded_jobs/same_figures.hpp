// Expects that two recordings have the same figures, as a user sees them.
#pragma once

#include <gtest/gtest.h>

#include "tests/conformance/recorded_jobs/job_figures.hpp"

namespace bubblesim::testing {

inline void expect_same(const JobFigures& figures, const JobFigures& expected) {
  EXPECT_EQ(figures.used, expected.used);
  EXPECT_EQ(figures.inspect, expected.inspect);
  EXPECT_EQ(figures.replay, expected.replay);
  EXPECT_EQ(figures.run, expected.run);
  EXPECT_EQ(figures.inspect_bubbles, expected.inspect_bubbles);
  EXPECT_EQ(figures.run_bubbles, expected.run_bubbles);
  EXPECT_EQ(figures.sensitivities.kernels, expected.sensitivities.kernels);
  EXPECT_EQ(figures.sensitivities.host, expected.sensitivities.host);
  EXPECT_EQ(figures.sensitivities.link, expected.sensitivities.link);
  EXPECT_EQ(figures.sensitivities.fixed, expected.sensitivities.fixed);
}

}  // namespace bubblesim::testing

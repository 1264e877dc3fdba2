// The length of an undisturbed iteration.
#include "policies/iteration_reference.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;

TEST(iteration_reference, is_the_median_of_the_first_iterations) {
  IterationReference reference({.iterations = 3, .longest = 1s});
  reference.add(90ms, 90ms);
  EXPECT_EQ(reference.value(), Duration{90ms});
  EXPECT_TRUE(reference.is_measuring(90ms));
  reference.add(50ms, 140ms);
  reference.add(60ms, 200ms);
  EXPECT_FALSE(reference.is_measuring(200ms));
  EXPECT_EQ(reference.value(), Duration{60ms});
  reference.add(10ms, 210ms);  // measured no more
  EXPECT_EQ(reference.value(), Duration{60ms});
}

TEST(iteration_reference, measures_nothing_if_given) {
  const IterationReference reference({.given = 70ms, .iterations = 3, .longest = 1s});
  EXPECT_FALSE(reference.is_measuring(0ms));
  EXPECT_EQ(reference.value(), Duration{70ms});
}

TEST(iteration_reference, gives_up_at_its_deadline) {
  IterationReference reference({.iterations = 3, .longest = 100ms});
  EXPECT_TRUE(reference.is_measuring(99ms));
  EXPECT_FALSE(reference.is_measuring(100ms));
  reference.add(50ms, 150ms);
  EXPECT_EQ(reference.value(), std::nullopt);
}

}  // namespace
}  // namespace bubblesim::policies

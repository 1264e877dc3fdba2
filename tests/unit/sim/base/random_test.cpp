// Seeded streams: the same numbers on every machine, for ever.
#include "sim/base/random.hpp"

#include <gtest/gtest.h>

namespace bubblesim {
namespace {

// Written by the first version of the code; a change of any is a change of all results.
TEST(Random, TheFirstNumbersOfAStreamNeverChange) {
  RandomStream stream(1, "arrivals");
  EXPECT_EQ(stream.uniform(), 0.43812014121584386);
  EXPECT_EQ(stream.uniform(), 0.97790481001508911);
  EXPECT_EQ(stream.uniform(), 0.77745118405452029);
  EXPECT_EQ(stream.uniform(), 0.46174832860724663);
  EXPECT_DOUBLE_EQ(stream.normal(1.0, 0.1), 0.95747373322993068);
  EXPECT_DOUBLE_EQ(stream.gamma(2.0, 0.5), 2.3203506301622285);
  EXPECT_DOUBLE_EQ(stream.exponential(2.0), 3.9695160391276585);
}

TEST(Random, EqualSeedAndNameGiveEqualNumbers) {
  RandomStream a(7, "x");
  RandomStream b(7, "x");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.uniform(), b.uniform());
}

TEST(Random, AnotherNameOrSeedGivesOtherNumbers) {
  RandomStream base(7, "x");
  const double first = base.uniform();
  EXPECT_NE(first, RandomStream(7, "y").uniform());
  EXPECT_NE(first, RandomStream(8, "x").uniform());
}

TEST(Random, MeansAreThoseAskedFor) {
  RandomStream stream(3, "means");
  constexpr int kDraws = 100000;
  double exponential = 0;
  double gamma = 0;
  double gamma_squared = 0;
  for (int i = 0; i < kDraws; ++i) {
    exponential += stream.exponential(2.0);
    const double value = stream.gamma(4.0, 0.5);
    gamma += value;
    gamma_squared += value * value;
  }
  EXPECT_NEAR(exponential / kDraws, 2.0, 0.03);  // deviation of the mean: 2 / sqrt(1e5) = 0.006
  const double mean = gamma / kDraws;
  EXPECT_NEAR(mean, 4.0, 0.03);
  EXPECT_NEAR(gamma_squared / kDraws - mean * mean, 4.0, 0.2);  // (0.5 * 4)^2
}

}  // namespace
}  // namespace bubblesim

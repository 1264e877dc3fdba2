#include "sim/workload/arrivals/arrival_process.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

namespace bubblesim::workload {
namespace {

std::vector<SimTime> take(const ArrivalSpec& spec, std::size_t count, std::uint64_t seed = 1) {
  auto process = make_arrivals(spec, RandomStream(seed, "arrivals"));
  EXPECT_TRUE(process) << process.error().text();
  std::vector<SimTime> instants;
  while (process && instants.size() < count) {
    const auto next = (*process)->next();
    if (!next) break;
    instants.push_back(*next);
  }
  return instants;
}

struct Gaps {
  double mean_s;
  double cv;
};

Gaps gaps_of(const std::vector<SimTime>& instants) {
  double sum = 0;
  double squares = 0;
  SimTime last = kSimStart;
  for (const SimTime instant : instants) {
    const double gap = to_seconds(instant - last);
    last = instant;
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(instants.size());
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

// 100000 gaps: the mean's standard error is cv / sqrt(n) = 0.3 % of the mean at cv 1.
TEST(ArrivalProcess, PoissonHasItsRateAndACvOfOne) {
  const Gaps gaps = gaps_of(take(PoissonArrivals{20}, 100'000));
  EXPECT_NEAR(gaps.mean_s, 0.05, 0.05 * 0.015);
  EXPECT_NEAR(gaps.cv, 1, 0.02);
}

TEST(ArrivalProcess, GammaHasItsRateAndItsCv) {
  const Gaps bursty = gaps_of(take(GammaArrivals{20, 2}, 100'000));
  EXPECT_NEAR(bursty.mean_s, 0.05, 0.05 * 0.03);
  EXPECT_NEAR(bursty.cv, 2, 0.06);
  const Gaps even = gaps_of(take(GammaArrivals{20, 0.1}, 10'000));
  EXPECT_NEAR(even.mean_s, 0.05, 0.05 * 0.005);
  EXPECT_NEAR(even.cv, 0.1, 0.005);
}

TEST(ArrivalProcess, SameSeedGivesTheSameInstants) {
  EXPECT_EQ(take(GammaArrivals{5, 2}, 100), take(GammaArrivals{5, 2}, 100));
  EXPECT_NE(take(GammaArrivals{5, 2}, 100, 1), take(GammaArrivals{5, 2}, 100, 2));
}

TEST(ArrivalProcess, InstantsNeverGoBack) {
  const auto instants = take(GammaArrivals{1e9, 3}, 10'000);
  EXPECT_TRUE(std::is_sorted(instants.begin(), instants.end()));
}

// Gaps of about 31 years: the tenth would lie beyond the range of SimTime.
TEST(ArrivalProcess, EndsWhereTimeEnds) {
  const auto instants = take(PoissonArrivals{1e-9}, 1000);
  EXPECT_LT(instants.size(), 100U);
  EXPECT_TRUE(std::is_sorted(instants.begin(), instants.end()));
}

TEST(ArrivalProcess, ImpossibleValuesAreFaults) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RandomStream random(1, "arrivals");
  EXPECT_FALSE(make_arrivals(PoissonArrivals{0}, random));
  EXPECT_FALSE(make_arrivals(PoissonArrivals{-1}, random));
  EXPECT_FALSE(make_arrivals(PoissonArrivals{nan}, random));
  EXPECT_FALSE(make_arrivals(GammaArrivals{1, 0}, random));
  EXPECT_FALSE(make_arrivals(FileArrivals{"x", ArrivalFormat::kGaps, 0}, random));
  EXPECT_FALSE(make_arrivals(FileArrivals{"no/such/file", ArrivalFormat::kGaps, 1}, random));
}

TEST(ArrivalProcess, SpeedupDividesArrivalTimesRoundingDown) {
  const std::string path = testing::TempDir() + "bubblesim_speedup.json";
  std::ofstream(path) << "[0.000000003, 0.000000003]";  // at 3 ns and 6 ns
  const auto at = [](std::int64_t ns) { return SimTime{Duration{ns}}; };
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 1}, 9), (std::vector{at(3), at(6)}));
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 2}, 9), (std::vector{at(1), at(3)}));
  EXPECT_EQ(take(FileArrivals{path, ArrivalFormat::kGaps, 0.5}, 9), (std::vector{at(6), at(12)}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace bubblesim::workload

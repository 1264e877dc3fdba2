// Splits of jobs' hours among works: by hand, and against every split on a grid.
#include "sim/advise/fleet/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bubblesim::advise {
namespace {

double value_of(const SplitProblem& problem, const std::vector<std::vector<double>>& split) {
  double sum = 0;
  for (std::size_t kind = 0; kind < split.size(); ++kind) {
    for (std::size_t work = 0; work < split[kind].size(); ++work) {
      sum += problem.value[kind][work] * split[kind][work];
    }
  }
  return sum;
}

void expect_allowed(const SplitProblem& problem, const std::vector<std::vector<double>>& split) {
  for (std::size_t kind = 0; kind < split.size(); ++kind) {
    double hours = 0;
    for (const double part : split[kind]) {
      EXPECT_GE(part, 0);
      hours += part;
    }
    EXPECT_LE(hours, problem.hours[kind] + 1e-6);
  }
  for (std::size_t work = 0; work < problem.left.size(); ++work) {
    double done = 0;
    for (std::size_t kind = 0; kind < split.size(); ++kind) {
      done += problem.done[kind][work] * split[kind][work];
    }
    if (problem.left[work]) {
      EXPECT_LE(done, *problem.left[work] * (1 + 1e-9) + 1e-6);
    }
  }
}

TEST(best_split, gives_each_kind_the_work_that_is_worth_most) {
  const SplitProblem problem{
      {10, 20}, {std::nullopt, std::nullopt}, {{0.5, 0.3}, {0.1, 0.4}}, {{1, 1}, {1, 1}}};
  const auto split = best_split(problem);
  EXPECT_EQ(split, (std::vector<std::vector<double>>{{10, 0}, {0, 20}}));
}

// 60 requests of the better work: kind 0 does 2 an hour at 0.5, kind 1 does 4 at 0.6. An hour of it
// is worth 0.2 more than the other work to kind 0, 0.1 a request; 0.1 more to kind 1, 0.025 a
// request. So kind 0 has all of its 10 hours of it, 20 requests, and the other 40 are 10 of kind
// 1's 20 hours.
TEST(best_split, gives_work_that_ends_to_whom_a_request_is_worth_most) {
  const SplitProblem problem{
      {10, 20}, {60, std::nullopt}, {{0.5, 0.3}, {0.6, 0.5}}, {{2, 9}, {4, 9}}};
  const auto split = best_split(problem);
  EXPECT_NEAR(split[0][0], 10, 1e-9);
  EXPECT_NEAR(split[1][0], 10, 1e-9);
  EXPECT_NEAR(split[1][1], 10, 1e-9);
  EXPECT_NEAR(value_of(problem, split), 10 * 0.5 + 10 * 0.6 + 10 * 0.5, 1e-9);
}

TEST(best_split, leaves_jobs_alone_where_nothing_pays) {
  const SplitProblem problem{{10}, {std::nullopt}, {{-0.1}}, {{5}}};
  EXPECT_EQ(best_split(problem), (std::vector<std::vector<double>>{{0}}));
  EXPECT_TRUE(best_split({}).empty());
}

// No split in quarters of an hour is better, and none is much worse than the best of them.
TEST(best_split, is_as_good_as_the_best_of_all_splits) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> number(0, 1);
  for (int i = 0; i < 40; ++i) {
    SplitProblem problem{{2, 3}, {2 + 4 * number(random), 3 * number(random)}, {}, {}};
    for (int kind = 0; kind < 2; ++kind) {
      problem.value.push_back({number(random) - 0.1, number(random) - 0.1});
      problem.done.push_back({0.5 + number(random), 0.5 + number(random)});
    }
    const auto split = best_split(problem);
    expect_allowed(problem, split);
    double best = 0;
    for (int code = 0; code < 9 * 9 * 13 * 13; ++code) {
      const std::vector<std::vector<double>> other{
          {0.25 * (code % 9), 0.25 * (code / 9 % 9)},
          {0.25 * (code / 81 % 13), 0.25 * (code / 1053)}};
      double over = 0;
      for (std::size_t kind = 0; kind < 2; ++kind) {
        over = std::max(over, other[kind][0] + other[kind][1] - problem.hours[kind]);
      }
      for (std::size_t work = 0; work < 2; ++work) {
        over = std::max(over, other[0][work] * problem.done[0][work] +
                                  other[1][work] * problem.done[1][work] - *problem.left[work]);
      }
      if (over <= 1e-9) best = std::max(best, value_of(problem, other));
    }
    EXPECT_GE(value_of(problem, split), best - 1e-9);
    EXPECT_LE(value_of(problem, split), best + 1.0);  // four quarters, at 1 an hour, short of it
  }
}

// A thousand hours of each of 60 kinds and 12 works: every work that ends is done, or no hour is
// left.
TEST(best_split, of_many_kinds_uses_all_that_there_is) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> number(0, 1);
  SplitProblem problem;
  for (int work = 0; work < 12; ++work) problem.left.emplace_back(4000 * 3600 * number(random));
  for (int kind = 0; kind < 60; ++kind) {
    problem.hours.push_back(1000);
    problem.value.emplace_back();
    problem.done.emplace_back();
    for (int work = 0; work < 12; ++work) {
      problem.value.back().push_back(0.1 + number(random));
      problem.done.back().push_back(3600 * (1 + number(random)));
    }
  }
  const auto split = best_split(problem);
  expect_allowed(problem, split);
  double hours = 0;
  for (const auto& of_kind : split) {
    for (const double part : of_kind) hours += part;
  }
  double undone = 0;
  for (std::size_t work = 0; work < 12; ++work) {
    double done = 0;
    for (std::size_t kind = 0; kind < 60; ++kind)
      done += problem.done[kind][work] * split[kind][work];
    undone += *problem.left[work] - done;
  }
  EXPECT_TRUE(hours > 60000 - 1e-3 || undone < 1) << hours << " " << undone;
}

}  // namespace
}  // namespace bubblesim::advise

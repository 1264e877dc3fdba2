#include "sim/step_cost/layout.hpp"

#include <gtest/gtest.h>

#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::step_cost {
namespace {

ServerLayout layout_of(std::uint32_t tensor, std::uint32_t data, bool expert_parallel) {
  return {tensor, data, expert_parallel, {BytesPerSecond{1e9}, Duration{1000}}};
}

TEST(Exchanges, AreNoneOnOneGpu) {
  EXPECT_EQ(exchange_us(test::small_model(), layout_of(1, 1, false), 8, 8, 8), 0);
}

TEST(Exchanges, OfTensorRanksAreRingsOfActivationsAndLogits) {
  // 8 tokens x 64 x 2 B = 1024 B: an all-reduce over 4 moves 3/2 of them in 1.536 us, and waits six
  // times 1 us; there are 1 + 2 x 2. Logits of 3 sequences: 3/4 of 3 x 1000 x 2 B in 4.5 us, and
  // 3 us.
  EXPECT_NEAR(exchange_us(test::small_model(), layout_of(4, 1, false), 8, 8, 3),
              5 * (1.536 + 6) + 4.5 + 3, 1e-9);
}

TEST(Exchanges, OfTwoTensorRanksAreOneReadOfTheOther) {
  // 1024 B in 1.024 us, and 1 us; five of them. Logits as above: half of 6000 B, and 1 us.
  EXPECT_NEAR(exchange_us(test::small_model(), layout_of(2, 1, false), 8, 8, 3),
              5 * (1.024 + 1) + 3 + 1, 1e-9);
  // From 65536 x 128 B = 8 MiB on a ring: the same bytes, two latencies.
  const auto reduces = [](double tokens) {
    return exchange_us(test::small_model(), layout_of(2, 1, false), tokens, tokens, 0) - 1;
  };
  EXPECT_NEAR(reduces(65535), 5 * (8388.480 + 1), 1e-6);
  EXPECT_NEAR(reduces(65536), 5 * (8388.608 + 2), 1e-6);
}

TEST(Exchanges, OfExpertsGatherAndScatterTheTokensOfTheGroup) {
  model::TransformerSpec model = test::small_model();
  model.mixture = model::MixtureSpec{8, 2, 32, 0, 0, 1};
  // 10 tokens x 128 B: half of it in 0.64 us, and 1 us; twice in each of 2 blocks.
  EXPECT_NEAR(exchange_us(model, layout_of(1, 2, true), 4, 10, 4), 2 * 2 * (0.64 + 1), 1e-9);
  // Members that have all experts exchange nothing.
  EXPECT_EQ(exchange_us(model, layout_of(1, 2, false), 4, 10, 4), 0);
}

TEST(BusyExperts, AreAllOfATokenAndInTheEndAllThatThereAre) {
  const model::MixtureSpec mixture{128, 8, 768, 0, 0, 1};
  EXPECT_NEAR(busy_experts(mixture, 1, 1), 8, 1e-9);
  EXPECT_NEAR(busy_experts(mixture, 2, 1), 4, 1e-9);
  EXPECT_NEAR(busy_experts(mixture, 1, 2), 8 + 8 * 120.0 / 128, 1e-9);
  EXPECT_NEAR(busy_experts(mixture, 2, 10000), 64, 1e-9);
}

}  // namespace
}  // namespace bubblesim::step_cost

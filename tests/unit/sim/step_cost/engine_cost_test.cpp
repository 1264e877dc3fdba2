#include <array>

#include <gmock/gmock.h>

#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fakes/lone_cost.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::step_cost {
namespace {

serving::ScheduledStep step_of(const std::vector<serving::StepSequence>& sequences) {
  serving::ScheduledStep step;
  for (const serving::StepSequence& sequence : sequences) step.add(sequence);
  return step;
}

serving::ScheduledStep decodes(std::uint32_t sequences, std::uint32_t context) {
  serving::StepSequence one;
  one.context = context;
  one.emits = true;
  return step_of(std::vector<serving::StepSequence>(sequences, one));
}

struct Server {
  RankTables tables = test::small_tables();
  model::TransformerSpec model = test::small_model();
  ServerLayout layout;
  EngineSpec engine;
  TableTimes times{tables, model, layout, 1000};
  EngineCost cost{times, model, layout, engine, {8, 16}};
  LoneCost alone{cost};
};

// A block's dense calls: two norms, qkv, rotary, o, gate and up, activation, down: 8. Besides, the
// embedding and the final norm.
constexpr double kDense = 2 * 8 + 2;

TEST(CaptureSizes, AreThoseOfVllm) {
  EXPECT_THAT(vllm_capture_sizes({.max_num_seqs = 8}), ::testing::ElementsAre(1, 2, 4, 8, 16));
  const CaptureSizes sizes = vllm_capture_sizes({.max_num_seqs = 256});
  EXPECT_EQ(sizes.size(), 51U);  // as the RTX 4090 run of LLMServingSim records them
  EXPECT_EQ(sizes[33], 248U);
  EXPECT_EQ(sizes[35], 272U);
  EXPECT_EQ(sizes.back(), 512U);
}

TEST(CaptureSizes, HoldDraftsAndNoMoreThanAStepMayHave) {
  // 2 x 4 sequences of 1 + 2 tokens: up to 24.
  serving::SchedulerSpec drafts{.max_num_seqs = 4};
  drafts.speculation.tokens = 2;
  EXPECT_THAT(vllm_capture_sizes(drafts), ::testing::ElementsAre(1, 2, 4, 8, 16, 24));
  EXPECT_THAT(vllm_capture_sizes({.max_num_batched_tokens = 20, .max_num_seqs = 64}),
              ::testing::ElementsAre(1, 2, 4, 8, 16));
}

class EngineCostTest : public ::testing::Test {
 protected:
  Server server;
};

TEST_F(EngineCostTest, AddsUpTheLayersOfAStep) {
  // 4 sequences of 500 tokens run as the graph of 8: dense 1 us a call; 2 x attention, which is
  // 4 us + 0.01 us x 4 x 500 (the grid is linear in both); head 14 us, sampler 5 us.
  EXPECT_EQ(server.alone.step_time(decodes(4, 499), true),
            Duration(static_cast<std::int64_t>(1000 * (kDense + 2 * 24 + 14 + 5))));
}

TEST_F(EngineCostTest, PadsAStepToItsGraph) {
  // 9 sequences run as the graph of 16: 2 us a call.
  const Duration nine = server.alone.step_time(decodes(9, 0), true);
  const Duration sixteen = server.alone.step_time(decodes(16, 0), true);
  // 7 more sequences: head 7 us, and what attention has beyond its grid.
  EXPECT_LT(nine, sixteen);
  EXPECT_GE(nine, Duration(static_cast<std::int64_t>(1000 * 2 * kDense)));
}

TEST_F(EngineCostTest, AddsTheHostWhereNothingHidesIt) {
  server.engine.first_step = Duration{70000};
  server.engine.prepare = Duration{3000};
  server.engine.output = Duration{200};
  const Duration first = server.alone.step_time(decodes(4, 0), false);
  const Duration later = server.alone.step_time(decodes(4, 0), false);
  const Duration ahead = server.alone.step_time(decodes(4, 0), true);
  EXPECT_EQ(first - later, Duration{70000});
  EXPECT_EQ(later - ahead, Duration{3000});
}

TEST_F(EngineCostTest, OfAGroupIsThatOfItsSlowestMember) {
  const serving::ScheduledStep small = decodes(1, 10);
  const serving::ScheduledStep large = decodes(8, 900);
  const std::array<const serving::ScheduledStep*, 2> both = {&small, &large};
  EXPECT_EQ(server.cost.step_time(both, true), server.alone.step_time(large, true));
  const std::array<const serving::ScheduledStep*, 2> idle = {nullptr, &large};
  EXPECT_EQ(server.cost.step_time(idle, true), server.alone.step_time(large, true));
}

/// A microsecond a padded token, and of the experts what they are asked for.
class CountedTimes final : public KernelTimes {
 public:
  double batch_us(const Batch& batch) override { return batch.padded_tokens; }
  double experts_us(double group_tokens) override {
    experts_tokens = group_tokens;
    return 0;
  }
  void add_counters(CounterSet&) const override {}
  double experts_tokens = 0;
};

TEST_F(EngineCostTest, OfAGroupPadsAllToTheLargestGraphOrNone) {
  CountedTimes times;
  model::TransformerSpec model = test::small_model();
  model.mixture = model::MixtureSpec{8, 2, 32, 0, 0, 1};
  const ServerLayout layout;
  const EngineSpec engine;
  EngineCost cost(times, model, layout, engine, {8, 16});
  const serving::ScheduledStep one = decodes(1, 10);
  const serving::ScheduledStep nine = decodes(9, 10);
  const serving::ScheduledStep many = decodes(17, 10);
  const std::array<const serving::ScheduledStep*, 3> graphs = {&one, nullptr, &nine};
  (void)cost.step_time(graphs, true);
  EXPECT_EQ(times.experts_tokens, 3 * 16);  // each runs the graph of 16
  const std::array<const serving::ScheduledStep*, 3> eager = {&one, &nine, &many};
  (void)cost.step_time(eager, true);
  EXPECT_EQ(times.experts_tokens, 1 + 9 + 17);
  (void)LoneCost(cost).step_time(one, true);
  EXPECT_EQ(times.experts_tokens, 8);       // alone it has its own
}

TEST(TableTimes, CountsLookupsBeyondTheProfile) {
  Server server;
  (void)server.alone.step_time(decodes(4, 3000), true);
  CounterSet counters;
  server.times.add_counters(counters);
  EXPECT_GE(counters.count("beyond_layer_tables"), 1U);
}

TEST(TableTimes, OfExpertsAreByTokensOnTheGpuAndBusyExperts) {
  RankTables tables = test::small_tables();
  tables.experts =
      ExpertTable{{1, 100}, {TimeCurve({2, 8}, {10, 40}), TimeCurve({2, 8}, {20, 50})}};
  model::TransformerSpec model = test::small_model();
  model.mixture = model::MixtureSpec{8, 2, 32, 0, 0, 1};
  const ServerLayout alone;
  // One token keeps 2 experts busy: 10 us in each of 2 blocks.
  EXPECT_NEAR(TableTimes(tables, model, alone, 1).experts_us(1), 20, 1e-9);
  // 2 tokens over 2 GPUs: one token here; of 4 experts 4 x (1 - 0.75^2) = 1.75 are busy.
  const ServerLayout two{1, 2, true, {}};
  EXPECT_NEAR(TableTimes(tables, model, two, 1).experts_us(2), 20, 1e-9);
}

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

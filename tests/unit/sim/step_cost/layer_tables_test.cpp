#include <gmock/gmock.h>

#include <array>

#include "sim/base/json.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fakes/lone_cost.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::step_cost {
namespace {

TEST(TimeCurve, LiesOnTheLineBetweenTwoPoints) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.interpolated(12.5, beyond), 150);  // a quarter of 200 above 100
  EXPECT_DOUBLE_EQ(curve.interpolated(20, beyond), 300);
  EXPECT_EQ(beyond.lookups, 0U);
}

TEST(TimeCurve, IsAStairOfItsNextPointWhereProductsWorkInTiles) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.at_least(10, beyond), 100);
  EXPECT_DOUBLE_EQ(curve.at_least(10.5, beyond), 300);
  EXPECT_DOUBLE_EQ(curve.at_least(3, beyond), 100);
  EXPECT_EQ(beyond.lookups, 0U);
}

TEST(TimeCurve, HoldsItsFirstTimeBelowAndCountsWhatIsBeyond) {
  Beyond beyond;
  const TimeCurve curve({10, 20}, {100, 300});
  EXPECT_DOUBLE_EQ(curve.interpolated(1, beyond), 100);
  EXPECT_EQ(beyond.lookups, 0U);
  EXPECT_DOUBLE_EQ(curve.interpolated(30, beyond), 500);  // 20 us a unit goes on
  EXPECT_DOUBLE_EQ(curve.at_least(30, beyond), 500);
  EXPECT_EQ(beyond.lookups, 2U);
}

// The last two points say -10 us a unit: 100 us would be left at 15, and -50 at 30.
TEST(TimeCurve, DoesNotFallBelowItsLastTimeBeyondIt) {
  Beyond beyond;
  const TimeCurve curve({5, 10}, {200, 150});
  EXPECT_DOUBLE_EQ(curve.interpolated(7.5, beyond), 175);
  EXPECT_DOUBLE_EQ(curve.interpolated(15, beyond), 150);
  EXPECT_DOUBLE_EQ(curve.at_least(30, beyond), 150);
  EXPECT_EQ(beyond.lookups, 2U);
}

// Falls by 90 us along the first axis, and rises by 10 us along the second.
TEST(TimeGrid, DoesNotFallBelowItsEdgeBeyondIt) {
  Beyond beyond;
  const TimeGrid grid({{0, 1}, {0, 10}}, {100, 110, 10, 20});
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{3.0, 5.0}, beyond), 15);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{1.0, 20.0}, beyond), 30);
}

TEST(TimeGrid, IsLinearAlongEachAxis) {
  Beyond beyond;
  // 1 + 2 x + 30 y + 4 x y at x = 0, 1 and y = 0, 10.
  const TimeGrid grid({{0, 1}, {0, 10}}, {1, 301, 3, 343});
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{0.5, 5.0}, beyond), 1 + 1 + 150 + 10);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{1.0, 0.0}, beyond), 3);
  EXPECT_EQ(beyond.lookups, 0U);
  EXPECT_DOUBLE_EQ(grid.interpolated(std::array{2.0, 10.0}, beyond), 385);
  EXPECT_EQ(beyond.lookups, 1U);
}

TEST(ExpertTable, EndsEachRowAtAsManyExpertsAsItsTokensKeepBusy) {
  Beyond beyond;
  const ExpertTable experts{{1, 3}, {TimeCurve({8}, {50}), TimeCurve({8, 24}, {60, 140})}};
  // At 2 tokens: half between 50 us, whatever is busy, and 100 us at 16 busy experts.
  EXPECT_DOUBLE_EQ(experts.interpolated(2, 16, beyond), 75);
  EXPECT_EQ(beyond.lookups, 0U);
}

Batch batch_of(std::vector<PromptChunk> chunks, std::vector<std::uint32_t> decodes) {
  Batch batch;
  batch.chunks = std::move(chunks);
  batch.decodes = std::move(decodes);
  batch.sequences = static_cast<std::uint32_t>(batch.chunks.size() + batch.decodes.size());
  batch.shape.padded = static_cast<std::uint32_t>(batch.decodes.size());
  return batch;
}

double time_of(const Batch& batch, std::uint32_t sm_count) {
  const RankTables tables = test::small_tables();
  Beyond beyond;
  return AttentionTime(tables, 4, sm_count).layer_us(batch, beyond);
}

// Two blocks an SM: with 1 SM nothing is split, with 1000 all is.
constexpr std::uint32_t kFull = 1;
constexpr std::uint32_t kSplit = 1000;

TEST(AttentionTime, OfEqualLengthsIsThatOfTheProfile) {
  // 8 sequences of 500 tokens: 4 us + 0.01 us x 8 x 500. Alone, a token takes 0.1 us, as much as
  // 10 sequences together: of equal lengths nothing is idle that the profile did not see.
  EXPECT_NEAR(time_of(batch_of({}, std::vector<std::uint32_t>(8, 500)), kFull), 44, 1e-9);
}

TEST(AttentionTime, GrowsByWhatTheLongestSequencesAddAlone) {
  // 8 sequences, of which one has 900 tokens and 7 have 100: mean 200, 4 + 16 us. While the long
  // one is alone, each of its 800 tokens takes 0.1 us in place of 0.01 us; the first 100 tokens of
  // all 8 lose 0.1 - 0.08 each, as 200 tokens do in the profile.
  std::vector<std::uint32_t> lengths(8, 100);
  lengths[3] = 900;
  EXPECT_NEAR(time_of(batch_of({}, lengths), kFull), 20 + 800 * 0.09 + 100 * 0.02 - 200 * 0.02,
              1e-9);
}

TEST(AttentionTime, SplitsTheKeysOfABatchThatDoesNotFillTheGpu) {
  std::vector<std::uint32_t> lengths(8, 100);
  lengths[3] = 900;
  EXPECT_NEAR(time_of(batch_of({}, lengths), kSplit), 20, 1e-9);
}

TEST(AttentionTime, OfAPromptAloneIsThatOfItsChunk) {
  EXPECT_NEAR(time_of(batch_of({{16, 500}}, {}), kFull), 53, 1e-9);
}

TEST(AttentionTime, TakesPromptsAsOneChunkWithAsManyPairs) {
  // 16 tokens after 1000 and 16 after 500: pairs 16 x 1008 + 16 x 508 = 32 x 758, which 32 tokens
  // after 742 have: 6 us + 74.2 us.
  EXPECT_NEAR(time_of(batch_of({{16, 1000}, {16, 500}}, {}), kFull), 80.2, 1e-9);
}

TEST(AttentionTime, TakesOffWhatShortPromptsLackOfOneChunk) {
  // Two prompts of 16 tokens: each 3 us, with one start 3 us; a chunk of 32 takes 6 us.
  EXPECT_NEAR(time_of(batch_of({{16, 0}, {16, 0}}, {}), kFull), 3, 1e-9);
}

TEST(AttentionTime, AddsUnequalLengthsBesideAPromptThoughTheBatchIsSmall) {
  std::vector<std::uint32_t> lengths(8, 100);
  lengths[3] = 900;
  // The mixed grid at 200 tokens: 6 us + 16 us.
  EXPECT_NEAR(time_of(batch_of({{16, 0}}, lengths), kSplit),
              22 + 800 * 0.09 + 100 * 0.02 - 200 * 0.02, 1e-9);
}

TEST(AttentionTime, BesideAPromptIsTheSumOfBothWhereOneSequenceWasProfiled) {
  RankTables tables = test::small_tables();
  tables.decode = TimeGrid({{1}, {0, 1000}}, {4, 14});
  tables.mixed = {};
  Beyond beyond;
  // A chunk of 16, 3 us, and 500 tokens, 9 us: at both of the points around them.
  EXPECT_NEAR(AttentionTime(tables, 4, kFull).layer_us(batch_of({{16, 0}}, {500}), beyond), 12,
              1e-9);
  EXPECT_EQ(beyond.lookups, 2U);
}

using test::layers_json;
using ::testing::HasSubstr;

LayerTables layer_tables() {
  LayerTables tables{"GPU", "org/model", "vLLM 0", "a test", {test::small_tables()}};
  tables.ranks[0].experts =
      ExpertTable{{1, 2}, {TimeCurve({8}, {50}), TimeCurve({8, 16}, {60, 70})}};
  return tables;
}

CheckedResult<LayerTables> read_back(const Json& document) {
  return read_layer_file(TempFolder().write("layers.json", document.dump()));
}

std::string fault_of(const Json& document) {
  const auto read = read_back(document);
  return read ? "" : read.error().front().text();
}

TEST(LayerFile, ReadsBackWhatItWrites) {
  const auto read = must(read_back(layers_json(layer_tables())));
  EXPECT_EQ(read, layer_tables());
}

TEST(LayerFile, RefusesAGridWithHoles) {
  Json document = layers_json(layer_tables());
  document["ranks"][0]["decode"]["us"].erase(0);
  EXPECT_THAT(fault_of(document),
              HasSubstr("layers.json: /ranks/0/decode: a hole: 3 times for 4 points"));
}

TEST(LayerFile, MayLackMixedBatchesOfOneSequenceOnly) {
  LayerTables tables = layer_tables();
  tables.ranks[0].mixed = {};
  EXPECT_THAT(fault_of(layers_json(tables)), HasSubstr("'attention'"));
  tables.ranks[0].decode = TimeGrid({{1}, {0, 1000}}, {4, 14});
  const auto read = must(read_back(layers_json(tables)));
  EXPECT_EQ(read, tables);
}

TEST(LayerFile, RefusesTablesWithoutALayer) {
  Json document = layers_json(layer_tables());
  document["ranks"][0]["dense"].erase("o_proj");
  EXPECT_THAT(fault_of(document), HasSubstr("no times of the layer 'o_proj'"));
}

TEST(LayerFile, RefusesPointsThatDoNotAscendAndTimesOfZero) {
  Json document = layers_json(layer_tables());
  document["ranks"][0]["sampler"] = {{"at", {2, 1}}, {"us", {1, 1}}};
  EXPECT_THAT(fault_of(document), HasSubstr("'sampler'"));
  document = layers_json(layer_tables());
  document["ranks"][0]["prefill"]["us"][0] = 0;
  EXPECT_THAT(fault_of(document), HasSubstr("'attention'"));
}

TEST(LayerFile, RefusesExpertsWithoutRowsOrWithRowsThatDoNotAscend) {
  Json document = layers_json(layer_tables());
  document["ranks"][0]["experts"] = Json::array();
  EXPECT_THAT(fault_of(document), HasSubstr("'moe'"));
  document = layers_json(layer_tables());
  document["ranks"][0]["experts"][0]["tokens"] = 2;  // as the second row
  EXPECT_THAT(fault_of(document), HasSubstr("'moe'"));
  document["ranks"][0]["experts"][0]["tokens"] = 3;
  EXPECT_THAT(fault_of(document), HasSubstr("'moe'"));
}

TEST(LayerTables, AreOfOneModelAndItsExperts) {
  model::ModelSpec model{"small", test::small_model(), {"org/other"}};
  const auto other = error_of(tables_for(layer_tables(), model, 1));
  EXPECT_EQ(other.message,
            "found the model 'org/other'; the layer times are of 'org/model'");
  model.published_as.push_back("org/model");
  EXPECT_THAT(error_of(tables_for(layer_tables(), model, 1)).message,
              HasSubstr("some of experts, and the model has none"));
  std::get<model::TransformerSpec>(model.network).mixture.emplace();
  EXPECT_TRUE(tables_for(layer_tables(), model, 1));
}

TEST(LayerTables, OfAnotherGpuOrOfAModelWithoutAPublishedNameAreCounted) {
  CounterSet counters;
  count_tables(layer_tables(), {"small", test::small_model(), {"org/model"}}, "GPU", counters);
  EXPECT_TRUE(counters.empty());
  count_tables(layer_tables(), {"small", test::small_model(), {}}, "another", counters);
  EXPECT_EQ(counters.count("layer_tables_of_other_gpu"), 1U);
  EXPECT_EQ(counters.count("layer_tables_of_unknown_model"), 1U);
}

TEST(LayerTables, NamesTheProfiledDegreesOfSharing) {
  EXPECT_THAT(error_of(layer_tables().of_tensor(2)).message,
              HasSubstr("on 2 GPUs that share each layer; profiled: 1"));
}

serving::ScheduledStep decodes(std::uint32_t sequences, std::uint32_t context) {
  return serving::decode_step(1, sequences, context);
}

struct Server {
  RankTables tables = test::small_tables();
  model::TransformerSpec model = test::small_model();
  ServerLayout layout;
  EngineSpec engine;
  TableTimes times{tables, model, layout, 1000};
  EngineCost cost{times, model, layout, engine, {{8, 16}}};
  LoneCost alone{cost};
};

// A block's dense calls: two norms, qkv, rotary, o, gate and up, activation, down: 8. Besides, the
// embedding and the final norm.
constexpr double kDense = 2 * 8 + 2;

TEST(CapturedGraphs, AreThoseOfVllm) {
  EXPECT_THAT(vllm_graphs({.max_num_seqs = 8}).sizes, ::testing::ElementsAre(1, 2, 4, 8, 16));
  const std::vector<std::uint32_t> sizes = vllm_graphs({.max_num_seqs = 256}).sizes;
  EXPECT_EQ(sizes.size(), 51U);  // as the RTX 4090 run of LLMServingSim records them
  EXPECT_EQ(sizes[33], 248U);
  EXPECT_EQ(sizes[35], 272U);
  EXPECT_EQ(sizes.back(), 512U);
}

TEST(CapturedGraphs, HoldDraftsAndNoMoreThanAStepMayHave) {
  // 2 x 4 sequences of 1 + 2 tokens: up to 24, each a multiple of 3.
  serving::SchedulerSpec drafts{.max_num_seqs = 4};
  drafts.speculation.tokens = 2;
  EXPECT_THAT(vllm_graphs(drafts).sizes, ::testing::ElementsAre(3, 6, 9, 18, 24));
  EXPECT_EQ(vllm_graphs(drafts).query, 3U);
  // 24 is the largest size: 25, its multiple of 5, is left out.
  drafts = {.max_num_seqs = 3};
  drafts.speculation.tokens = 4;
  EXPECT_THAT(vllm_graphs(drafts).sizes, ::testing::ElementsAre(5, 10, 20));
  EXPECT_THAT(vllm_graphs({.max_num_batched_tokens = 20, .max_num_seqs = 64}).sizes,
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
  double batch_us(const Batch& batch) override {
    graphs = batch.shape.graphs;
    return batch.shape.padded;
  }
  double experts_us(double group_tokens) override {
    experts_tokens = group_tokens;
    return 0;
  }
  double experts_tokens = 0;
  StepGraphs graphs = StepGraphs::kNone;  ///< of the last member
};

TEST_F(EngineCostTest, OfAGroupPadsAllToTheLargestGraphOrNone) {
  CountedTimes times;
  model::TransformerSpec model = test::small_model();
  model.mixture = model::MixtureSpec{8, 2, 32, 0, 0, 1};
  const ServerLayout layout;
  const EngineSpec engine;
  EngineCost cost(times, model, layout, engine, {{8, 16}});
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

TEST_F(EngineCostTest, OfAGroupLaunchesWholeGraphsOnlyIfEachStepIsOne) {
  CountedTimes times;
  const model::TransformerSpec model = test::small_model();
  const EngineSpec engine;
  const ServerLayout layout;
  EngineCost cost(times, model, layout, engine, {{9, 18}, 3});
  const auto checks = [](std::uint32_t tokens) {
    serving::ScheduledStep step;
    for (const std::uint32_t each : {3U, tokens}) step.add({.new_tokens = each, .context = 10});
    return step;
  };
  const serving::ScheduledStep all = checks(3), fewer = checks(2), many = checks(16);
  const auto graphs_of = [&](const serving::ScheduledStep* other) {
    (void)cost.step_time(std::array{other, &all}, true);
    return times.graphs;
  };
  EXPECT_EQ(graphs_of(&all), StepGraphs::kWhole);
  EXPECT_EQ(graphs_of(nullptr), StepGraphs::kWhole);  // it decodes three tokens of no request
  EXPECT_EQ(graphs_of(&fewer), StepGraphs::kPieces);
  EXPECT_EQ(graphs_of(&many), StepGraphs::kNone);
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

TEST(Exchanges, OfConnectedTensorRanksHaveOneStageOrTwo) {
  // Five all-reduces of 128 B a token; logits of no sequence: a latency less than ranks.
  const auto reduce = [](std::uint32_t ranks, double tokens) {
    ServerLayout layout = layout_of(ranks, 1, false);
    layout.link.mesh = model::GpuMesh::kFull;
    const double all = exchange_us(test::small_model(), layout, tokens, tokens, 0);
    return (all - (ranks - 1)) / 5;
  };
  // Each reads three arrays of 4095 x 128 B; from 512 KiB on, twice 3/4 of one.
  EXPECT_NEAR(reduce(4, 4095), 1572.48 + 1, 1e-6);
  EXPECT_NEAR(reduce(4, 4096), 786.432 + 2, 1e-6);
  EXPECT_NEAR(reduce(4, 65535), 12582.72 + 2, 1e-6);
  EXPECT_NEAR(reduce(4, 65536), 12582.912 + 6, 1e-6);  // 8 MiB, on a ring
  // Seven arrays of 2047 x 128 B; from 256 KiB on, twice 7/8 of one.
  EXPECT_NEAR(reduce(8, 2047), 1834.112 + 1, 1e-6);
  EXPECT_NEAR(reduce(8, 2048), 458.752 + 2, 1e-6);
  EXPECT_NEAR(reduce(6, 2048), 436.906667 + 2, 1e-6);
  EXPECT_NEAR(reduce(3, 8), 1.365333 + 4, 1e-6);       // the kernels know even numbers up to 8
  EXPECT_NEAR(reduce(16, 8), 1.92 + 30, 1e-6);
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

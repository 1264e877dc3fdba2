#include <array>

#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "sim/step_cost/layer_tables.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/step_cost/layers_json.hpp"
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
  batch.padded_tokens = static_cast<std::uint32_t>(batch.decodes.size());
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

std::string fault_of(const Json& document) {
  const auto read = parse_layers(document.dump(), "layers.json");
  return read ? "" : read.error().front().text();
}

TEST(LayerFile, ReadsBackWhatItWrites) {
  const auto read = parse_layers(layers_json(layer_tables()).dump(), "layers.json");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(*read, layer_tables());
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
  const auto read = parse_layers(layers_json(tables).dump(), "layers.json");
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(*read, tables);
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
  const auto other = tables_for(layer_tables(), model, 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
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

}  // namespace
}  // namespace bubblesim::step_cost

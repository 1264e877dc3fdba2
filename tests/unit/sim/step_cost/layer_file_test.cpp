#include "sim/step_cost/layer_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "tests/unit/sim/step_cost/layers_json.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::step_cost {
namespace {

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
  const auto dense = tables_for(layer_tables(), model, 1);
  ASSERT_FALSE(dense);
  EXPECT_THAT(dense.error().message, HasSubstr("some of experts, and the model has none"));
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
  const auto two = layer_tables().of_tensor(2);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("on 2 GPUs that share each layer; profiled: 1"));
}

}  // namespace
}  // namespace bubblesim::step_cost

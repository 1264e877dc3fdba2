#include "sim/step_cost/layer_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "tests/unit/sim/step_cost/small_tables.hpp"

namespace bubblesim::step_cost {
namespace {

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

TEST(LayerTables, NamesTheProfiledDegreesOfSharing) {
  const auto two = layer_tables().of_tensor(2);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("on 2 GPUs that share each layer; profiled: 1"));
}

}  // namespace
}  // namespace bubblesim::step_cost

// The model files that ship, and faulty ones.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/sim/model/work_testing.hpp"

namespace bubblesim::model {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::vector<std::string> faults_of(std::string_view text) {
  const auto model = parse_model(text, "m.json");
  std::vector<std::string> out;
  if (model) return out;
  for (const Error& error : model.error()) out.push_back(error.place + ": " + error.message);
  return out;
}

TEST(ModelFiles, EveryShippedFileLoadsAndSaysWhereItsSizesComeFrom) {
  const auto models = read_model_folder(model_folder());
  ASSERT_TRUE(models) << models.error().front().text();
  EXPECT_GE(models->size(), 25U);
  for (const ModelFile& file : *models) EXPECT_FALSE(file.source.empty()) << file.id;
}

TEST(ModelFiles, ParametersAreThosePublished) {
  const auto models = read_model_folder(model_folder());
  ASSERT_TRUE(models);
  for (const ModelFile& file : *models) {
    if (!file.published) continue;
    const double count = value(parameter_count(file.spec));
    const double allowed = std::max(0.01 * file.published->value, 0.5 * file.published->last_digit);
    EXPECT_NEAR(count, file.published->value, allowed) << file.id;
  }
}

TEST(ModelFiles, CountsKnownToTheLastParameterAreExact) {
  EXPECT_EQ(value(parameter_count(shipped("gpt2-large"))), 774030080.0);
  EXPECT_EQ(value(parameter_count(shipped("llama2-7b"))), 6738415616.0);
  EXPECT_EQ(value(parameter_count(shipped("chatglm-6b"))), 6173286400.0);
  EXPECT_EQ(value(parameter_count(shipped("mixtral-8x7b"))), 46702792704.0);
  EXPECT_EQ(value(parameter_count(shipped("llama3-405b"))), 405853388800.0);
  EXPECT_EQ(value(parameter_count(shipped("resnet152"))), 60192808.0);
  EXPECT_EQ(value(parameter_count(shipped("vgg19"))), 143667240.0);
  // BertModel has 109,482,240; two classes add 2 x 768 + 2.
  EXPECT_EQ(value(parameter_count(shipped("bert-base"))), 109482240.0 + 1538.0);
}

TEST(ModelFiles, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto model = find_model("bert-bas", model_folder());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().front().text(), HasSubstr("did you mean \"bert-base\""));
}

TEST(ModelFiles, AllFaultsOfAFileAreReportedAtOnce) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "transformer",
      "layers": 0, "hidden": 100, "heads": 3, "vocabulary": 10, "max_sequence": 8,
      "positions": "rotry", "norm": "layer", "activation": "gelu", "biases": true,
      "dropout": false, "hiden": 5})");
  ASSERT_EQ(faults.size(), 4U) << ::testing::PrintToString(faults);
  EXPECT_THAT(faults[0], HasSubstr("/layers: "));
  EXPECT_THAT(faults[1], HasSubstr("/heads: found 3, which does not divide hidden (100)"));
  EXPECT_THAT(faults[2], HasSubstr("rotary"));
  EXPECT_THAT(faults[3], HasSubstr("hidden"));
}

TEST(ModelFiles, AWindowLargerThanItsImageIsAFault) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "convolutional",
      "image": 4, "layers": [{"kind": "convolution", "out": 8, "kernel": 7}]})");
  EXPECT_THAT(faults, ElementsAre("/layers/0/kernel: found a window of 7 on an image of 4 with "
                                  "padding; expected at most that"));
}

TEST(ModelFiles, MoreChosenExpertsThanThereAreIsAFault) {
  const auto faults = faults_of(R"({"name": "x", "source": "y", "family": "transformer",
      "layers": 2, "hidden": 64, "heads": 4, "vocabulary": 10, "max_sequence": 8,
      "positions": "rotary", "norm": "rms", "activation": "swiglu", "biases": false,
      "dropout": false, "mixture": {"experts": 4, "top_k": 5, "expert_ffn": 64}})");
  EXPECT_THAT(faults, ElementsAre("/mixture/top_k: found 5; expected at most 4, the number of "
                                  "experts"));
}

}  // namespace
}  // namespace bubblesim::model

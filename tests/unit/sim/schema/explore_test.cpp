#include "sim/schema/explore.hpp"

#include <gmock/gmock.h>

#include <array>

#include "sim/base/json.hpp"
#include "sim/schema/write_schema.hpp"

namespace bubblesim::schema {
namespace {

enum class Process : std::uint8_t { kPoisson, kGamma };
constexpr std::array<Choice<Process>, 2> kProcesses{
    {{"poisson", Process::kPoisson}, {"gamma", Process::kGamma}}};

/// The schema of files whose root is read so, without its heading.
Json schema_of(const std::function<void(ObjectReader&)>& read) {
  const Form form = explore([&](const JsonDocument& document) {
    Errors errors;
    ObjectReader root = document.root(errors);
    read(root);
    root.finish();
  });
  Json out = write_schema(form, {"t", "d"}, Json::object());
  for (const char* key : {"$schema", "title", "description"}) out.erase(key);
  out["properties"].erase("$schema");
  return out;
}

TEST(Schema, SaysTypeRangeAndDefaultOfEveryKey) {
  const Json schema = schema_of([](ObjectReader& root) {
    (void)root.text("name");
    (void)root.integer<std::uint16_t>("count", {1, 9}, 3);
    (void)root.duration("slice", {Duration{1}, Duration{5000}});
  });
  EXPECT_EQ(schema, Json::parse(R"({
    "type": "object",
    "properties": {
      "name": {"type": "string"},
      "count": {"type": "integer", "minimum": 1, "maximum": 9,
                "description": "An integer from 1 to 9; default 3", "default": 3},
      "slice": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|min|h)$",
                "description":
                    "A duration from 1ns to 5us, with its unit: ns us ms s min h"}},
    "additionalProperties": false,
    "required": ["name", "slice"]})"));
}

TEST(Schema, FindsWhatIsBehindAnAbsentObjectAndInsideLists) {
  const Json schema = schema_of([](ObjectReader& root) {
    ObjectReader gpu = root.child("gpu", Presence::kOptional);
    if (gpu.present()) (void)gpu.flag("mig");
    for (ObjectReader& job : root.children("jobs")) (void)job.text("name", "x");
  });
  EXPECT_EQ(schema["properties"]["gpu"]["required"], Json({"mig"}));
  EXPECT_EQ(schema["properties"]["jobs"]["items"]["properties"]["name"]["default"], "x");
  EXPECT_EQ(schema["required"], Json({"jobs"}));
}

TEST(Schema, AKeyThatDependsOnAChoiceIsRequiredThereAndRefusedElsewhere) {
  const Json schema = schema_of([](ObjectReader& root) {
    const Process process = root.choice("process", kProcesses);
    if (process == Process::kGamma) (void)root.number("cv", {0, 9});
  });
  EXPECT_EQ(schema["required"], Json({"process"}));
  EXPECT_EQ(schema["allOf"], Json::parse(R"([
    {"if": {"properties": {"process": {"const": "poisson"}}, "required": ["process"]},
     "then": {"properties": {"cv": false}}},
    {"if": {"properties": {"process": {"const": "gamma"}}, "required": ["process"]},
     "then": {"required": ["cv"]}}])"));
}

TEST(Schema, AKeyThatIsReadOnlyBesideAnotherNeedsIt) {
  const Json schema = schema_of([](ObjectReader& root) {
    if (!root.has("prompt")) return;
    (void)root.text("prompt");
    (void)root.text("output");
    (void)root.text("style", "none");
  });
  EXPECT_EQ(schema["dependentRequired"], Json::parse(R"({
    "output": ["prompt"], "prompt": ["output"], "style": ["prompt"]})"));
}

TEST(Schema, OneKeyInPlaceOfAnother) {
  const Json schema = schema_of([](ObjectReader& root) {
    if (root.has("levels")) {
      (void)root.integers<int>("levels");
    } else {
      (void)root.integer<int>("depth");
    }
  });
  EXPECT_EQ(schema["allOf"],
            Json::parse(R"([{"anyOf": [{"required": ["levels"]}, {"required": ["depth"]}]}])"));
}

TEST(Schema, ExactlyOneOfTheKeys) {
  const Json schema = schema_of([](ObjectReader& root) {
    root.one_of({"trace", "synth"});
    if (root.has("trace")) (void)root.text("trace");
    if (root.has("synth")) (void)root.child("synth").text("model");
  });
  EXPECT_EQ(schema["allOf"],
            Json::parse(R"([{"oneOf": [{"required": ["trace"]}, {"required": ["synth"]}]}])"));
  EXPECT_FALSE(schema.contains("required"));
  EXPECT_EQ(schema["properties"]["synth"]["required"], Json({"model"}));
}

TEST(Schema, ADefaultThatFollowsAnotherKeyIsNotPromised) {
  const Json schema = schema_of([](ObjectReader& root) {
    const auto heads = root.integer<std::uint32_t>("heads", {1, 64});
    (void)root.integer<std::uint32_t>("kv_heads", {1, 64}, heads);
  });
  EXPECT_FALSE(schema["properties"]["kv_heads"].contains("default"));
  EXPECT_EQ(schema["properties"]["kv_heads"]["description"],
            "An integer from 1 to 64; the default depends on other keys");
}

TEST(Schema, ATextOrAList) {
  const Json schema = schema_of([](ObjectReader& root) {
    if (root.kind("trace") == JsonKind::kList) {
      (void)root.texts("trace");
    } else {
      (void)root.text("trace");
    }
  });
  EXPECT_EQ(schema["properties"]["trace"], Json::parse(R"({"anyOf": [
    {"type": "string"}, {"type": "array", "items": {"type": "string"}}]})"));
  EXPECT_EQ(schema["required"], Json({"trace"}));
}

}  // namespace
}  // namespace bubblesim::schema

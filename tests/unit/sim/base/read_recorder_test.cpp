#include "sim/base/read_recorder.hpp"

#include <gmock/gmock.h>

#include <array>

#include "tests/unit/sim/base/parsed.hpp"

namespace bubblesim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> faults_of(const Errors& errors) {
  std::vector<std::string> out;
  for (const Error& error : errors) out.push_back(error.place + ": " + error.message);
  return out;
}

/// One line a call: "/jobs/0 n required".
class Lines final : public ReadRecorder {
 public:
  void on_read(const JsonRead& read) override {
    lines.push_back(read.object + " " + std::string(read.key) +
                    (read.object_present ? "" : " (absent)") +
                    (read.presence == Presence::kRequired ? " required" : ""));
    shapes.push_back(read.shape);
  }
  void on_default(const std::string& object, std::string_view key,
                  const JsonDefault& value) override {
    lines.push_back(object + " " + std::string(key) + " default");
    defaults.push_back(value);
  }
  void on_one_of(const std::string& object, const std::vector<std::string_view>& keys) override {
    lines.push_back(object + " one of " + std::to_string(keys.size()));
  }
  std::vector<std::string> lines;
  std::vector<JsonShape> shapes;
  std::vector<JsonDefault> defaults;
};

TEST(ReadRecorder, IsToldOfEveryReadWithItsRangeAndDefault) {
  JsonDocument document = parsed(R"({"jobs": [{"n": 3}]})");
  Lines lines;
  document.record(lines);
  Errors errors;
  ObjectReader root = document.root(errors);
  EXPECT_EQ(root.children("jobs")[0].integer<std::uint16_t>("n", {1, 9}), 3);
  EXPECT_EQ(root.duration("slice", {Duration{5}}, Duration{7}), Duration{7});
  EXPECT_THAT(lines.lines,
              ElementsAre(" jobs required", "/jobs/0 n required", " slice", " slice default"));
  EXPECT_EQ(lines.shapes[1], (JsonShape(Range<std::uint64_t>{1, 9})));
  EXPECT_EQ(lines.shapes[2], (JsonShape(Range<Duration>{Duration{5}})));
  EXPECT_THAT(lines.defaults, ElementsAre(JsonDefault(Duration{7})));
}

TEST(ReadRecorder, LearnsWhatAnAbsentObjectWouldHold) {
  JsonDocument document = parsed("{}");
  Lines lines;
  document.record(lines);
  Errors errors;
  ObjectReader gpu = document.root(errors).child("gpu", Presence::kOptional);
  EXPECT_FALSE(gpu.flag("mig"));
  EXPECT_THAT(lines.lines, ElementsAre(" gpu", "/gpu mig (absent) required"));
}

TEST(ReadRecorder, ChoicesAndTheirDefaultsAreNames) {
  constexpr std::array<Choice<int>, 2> kSizes{{{"small", 1}, {"large", 2}}};
  JsonDocument document = parsed("{}");
  Lines lines;
  document.record(lines);
  Errors errors;
  EXPECT_EQ(document.root(errors).choice("size", kSizes, 2), 2);
  EXPECT_THAT(lines.shapes, ElementsAre(JsonShape(ChoiceShape{{"small", "large"}})));
  EXPECT_THAT(lines.defaults, ElementsAre(JsonDefault(std::string("large"))));
}

TEST(JsonReader, TheRootMayNameItsSchemaAndNobodyElse) {
  const JsonDocument document = parsed(R"({"$schema": "run.schema.json", "a": {"$schema": "x"}})");
  Errors errors;
  ObjectReader root = document.root(errors);
  EXPECT_TRUE(root.child("a").present());
  EXPECT_THAT(root.keys(), ElementsAre("a"));
  root.finish();
  EXPECT_THAT(faults_of(errors),
              ElementsAre("/a/$schema: unknown key \"$schema\"; known: none"));
}

TEST(JsonReader, ASchemaThatIsNoTextIsAFault) {
  const JsonDocument document = parsed(R"({"$schema": 5})");
  Errors errors;
  document.root(errors).finish();
  EXPECT_THAT(faults_of(errors), ElementsAre("/$schema: found the number 5; expected text"));
}

TEST(JsonReader, OneOfSeveralKeysIsExpected) {
  const auto faults = [](std::string_view text) {
    const JsonDocument document = parsed(text);
    Errors errors;
    ObjectReader root = document.root(errors);
    root.one_of({"a", "b", "c"});
    root.finish();
    return faults_of(errors);
  };
  EXPECT_THAT(faults(R"({"b": 1})"), IsEmpty());
  EXPECT_THAT(faults("{}"), ElementsAre(R"(: expected "a", "b" or "c"; found neither)"));
  EXPECT_THAT(faults(R"({"a": 1, "c": 1})"),
              ElementsAre(R"(: found both "a" and "c"; expected one of them)"));
  EXPECT_THAT(faults(R"({"a": 1, "b": 1, "c": 1})"),
              ElementsAre(R"(: found all of "a" and "b" and "c"; expected one of them)"));
}

TEST(JsonReader, ARequiredKeyMayHaveItsOwnMessageAndATextItsOneValue) {
  const JsonDocument document = parsed(R"({"unit": "ms"})");
  Errors errors;
  ObjectReader root = document.root(errors);
  EXPECT_FALSE(root.require("source", "where is it from?"));
  root.expect("unit", "s");
  root.finish();
  EXPECT_THAT(faults_of(errors),
              ElementsAre(": where is it from?", R"(/unit: found "ms"; expected "s")"));
}

}  // namespace
}  // namespace bubblesim

#include "sim/policy/parameter_check.hpp"

#include <gtest/gtest.h>

#include "sim/policy/declare.hpp"

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

PolicySpec example() {
  PolicySpec spec;
  spec.name = "example";
  spec.parameters = {declare_flag("drain", false, {}),
                     declare_integer("blocks", 20000, 0, 100000, {"blocks", "", ""}),
                     declare_number("fraction", 0.68, 0.01, 1, {}),
                     declare_duration("window", 5ms, 1ms, 1s, {}),
                     declare_choice("barrier", {"filler", "both"}, {}),
                     declare_device_duration("slice", 1us, 1s, {})};
  return spec;
}

CheckedResult<ParameterSet> check(std::vector<GivenParameter> given) {
  return check_parameters(example(), given, "run.json", "/policy/parameters");
}

/// The one fault that a value gives.
std::string fault(std::string_view name, const JsonScalar& value) {
  const auto set = check({{name, value}});
  if (set) return "no fault";
  EXPECT_EQ(set.error().size(), 1u);
  return set.error()[0].text();
}

TEST(check_parameters, takes_the_given_and_the_defaults_of_the_rest) {
  const auto set = check({{"window", "2.5ms"},
                          {"blocks", "7"},
                          {"drain", "true"},
                          {"barrier", "both"},
                          {"fraction", "1"}});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->duration("window"), Duration{2500us});
  EXPECT_EQ(set->integer("blocks"), 7);
  EXPECT_TRUE(set->flag("drain"));
  EXPECT_EQ(set->text("barrier"), "both");
  EXPECT_EQ(set->number("fraction"), 1.0);
  EXPECT_EQ(set->duration_unless_word("slice"), std::nullopt);
}

TEST(check_parameters, takes_a_word_or_a_value_where_both_are_allowed) {
  EXPECT_EQ(check({{"slice", "device"}})->duration_unless_word("slice"), std::nullopt);
  EXPECT_EQ(check({{"slice", "2ms"}})->duration_unless_word("slice"), Duration{2ms});
  EXPECT_EQ(fault("slice", "devise"),
            "run.json: /policy/parameters/slice: found \"devise\", expected a time with its unit, "
            "such as \"5ms\" or \"device\"");
}

TEST(check_parameters, takes_the_ends_of_a_range_and_nothing_beyond) {
  EXPECT_TRUE(check({{"window", "1ms"}, {"fraction", "0.01"}, {"blocks", "100000"}}));
  EXPECT_EQ(fault("window", "1.000001s"),
            "run.json: /policy/parameters/window: found \"1.000001s\", expected 1ms to 1s");
  EXPECT_EQ(fault("blocks", "100001"),
            "run.json: /policy/parameters/blocks: found \"100001\", expected 0 to 100000 blocks");
}

TEST(check_parameters, refuses_other_types) {
  for (const auto& [name, value] : std::vector<GivenParameter>{{"blocks", "7.0"},
                                                              {"blocks", ""},
                                                              {"blocks", "99999999999999999999"},
                                                              {"blocks", "7 "},
                                                              {"fraction", "nan"},
                                                              {"fraction", "inf"},
                                                              {"fraction", "half"},
                                                              {"window", "5"},
                                                              {"window", "-5ms"},
                                                              {"drain", "1"},
                                                              {"drain", "True"}}) {
    EXPECT_NE(fault(name, value), "no fault") << name << " = " << std::get<std::string>(value);
  }
}

/// What a config has typed is judged as its text would be.
TEST(check_parameters, takes_flags_and_numbers_as_they_are) {
  const auto set = check({{"drain", true}, {"blocks", 7}, {"fraction", 0.25}});
  ASSERT_TRUE(set);
  EXPECT_EQ(*set, *check({{"drain", "true"}, {"blocks", "7"}, {"fraction", "0.25"}}));
  EXPECT_EQ(check({{"fraction", 1}})->number("fraction"), 1.0);
  const std::string place = "run.json: /policy/parameters/";
  EXPECT_EQ(fault("blocks", 7.0), place + "blocks: found \"7.0\", expected a whole number");
  EXPECT_EQ(fault("blocks", -1), place + "blocks: found \"-1\", expected 0 to 100000 blocks");
  EXPECT_EQ(fault("fraction", 2), place + "fraction: found \"2\", expected 0.01 to 1");
  EXPECT_EQ(fault("drain", 1), place + "drain: found \"1\", expected true or false");
  EXPECT_EQ(fault("barrier", true), fault("barrier", "true"));
  EXPECT_EQ(fault("window", 5), fault("window", "5"));
}

TEST(check_parameters, names_the_nearest_parameter_and_choice) {
  EXPECT_NE(fault("windwo", "5ms").find("did you mean \"window\"?"), std::string::npos);
  EXPECT_NE(fault("barrier", "fillers").find("did you mean \"filler\"?"), std::string::npos);
}

TEST(check_parameters, reports_all_faults_at_once_with_their_places) {
  const auto set = check(
      {{"windows", "5ms"}, {"fraction", "2"}, {"blocks", "1"}, {"blocks", "2"}, {"a/b", "1"}});
  ASSERT_FALSE(set);
  ASSERT_EQ(set.error().size(), 4u);
  EXPECT_EQ(set.error()[0].place, "/policy/parameters/windows");
  EXPECT_EQ(set.error()[1].place, "/policy/parameters/fraction");
  EXPECT_EQ(set.error()[2].message, "given twice");
  EXPECT_EQ(set.error()[3].place, "/policy/parameters/a~1b");
}

}  // namespace
}  // namespace bubblesim::policy

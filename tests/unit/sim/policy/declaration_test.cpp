#include "sim/policy/declaration.hpp"

#include <gtest/gtest.h>

#include "sim/policy/declare.hpp"
#include "tests/fault.hpp"

namespace bubblesim::policy {
namespace {

using namespace std::chrono_literals;

PolicySpec named(std::string name) {
  PolicySpec spec;
  spec.name = std::move(name);
  return spec;
}

TEST(value_text, is_as_a_config_writes_it) {
  EXPECT_EQ(value_text(true), "true");
  EXPECT_EQ(value_text(std::int64_t{-3}), "-3");
  EXPECT_EQ(value_text(0.68), "0.68");
  EXPECT_EQ(value_text(Duration{1024us}), "1.024ms");
  EXPECT_EQ(value_text(std::string("none")), "none");
}

TEST(defaults, hold_every_declared_parameter) {
  PolicySpec spec = named("p");
  spec.parameters = {declare_flag("f", true, {}),
                     declare_integer("i", 2, 0, 9, {}),
                     declare_number("n", 0.5, 0, 1, {}),
                     declare_duration("d", 5ms, 0ns, 1s, {}),
                     declare_choice("c", {"first", "second"}, {}),
                     declare_device_duration("s", 0ns, 1s, {})};
  const ParameterSet set = defaults(spec);
  EXPECT_TRUE(set.flag("f"));
  EXPECT_EQ(set.integer("i"), 2);
  EXPECT_EQ(set.number("n"), 0.5);
  EXPECT_EQ(set.duration("d"), Duration{5ms});
  EXPECT_EQ(set.text("c"), "first");
  EXPECT_EQ(set.duration_unless_word("s"), std::nullopt);
  EXPECT_EQ(std::distance(set.begin(), set.end()), 6);
}

TEST(registry, finds_by_name_in_order_of_registration) {
  Registry registry;
  registry.add(named("tgs"));
  registry.add(named("mps"));
  EXPECT_EQ(registry.all()[1].name, "mps");
  EXPECT_EQ((*registry.find("mps"))->name, "mps");
}

TEST(registry, names_the_nearest_policy_and_all_of_them) {
  Registry registry;
  registry.add(named("exclusive"));
  registry.add(named("mps"));
  EXPECT_EQ(error_of(registry.find("mpss")).message,
            "unknown policy \"mpss\"; did you mean \"mps\"? Known: exclusive, mps");
}

TEST(registry_death, refuses_two_policies_of_one_name) {
  Registry registry;
  registry.add(named("mps"));
  EXPECT_DEATH(registry.add(named("mps")), "two policies of one name");
}

TEST(parameter_set_death, refuses_what_is_not_declared_or_of_another_type) {
  const ParameterSet set({{"i", std::int64_t{2}}});
  EXPECT_DEATH((void)set.integer("j"), "not declared");
  EXPECT_DEATH((void)set.number("i"), "another type");
}

}  // namespace
}  // namespace bubblesim::policy

// policies/README.md names every policy, and what they declare is complete.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "policies/builtin.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

TEST(readme, has_a_row_of_every_policy) {
  std::ifstream file(BUBBLESIM_SOURCE_DIR "/policies/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const Registry registry = policies::builtin_policies();
  for (const PolicySpec& spec : registry.all()) {
    EXPECT_NE(readme.find("\n| `" + spec.name + "` "), std::string::npos) << spec.name;
  }
}

TEST(declarations, are_complete_and_their_defaults_are_in_range) {
  const Registry registry = policies::builtin_policies();
  for (const PolicySpec& spec : registry.all()) {
    EXPECT_FALSE(spec.summary.empty()) << spec.name;
    EXPECT_FALSE(spec.source.empty()) << spec.name;
    EXPECT_EQ(spec.oracle, spec.name.starts_with("ideal")) << spec.name;
    for (const ParameterSpec& parameter : spec.parameters) {
      EXPECT_FALSE(parameter.help.empty()) << spec.name << " " << parameter.name;
      EXPECT_FALSE(parameter.source.empty()) << spec.name << " " << parameter.name;
      if (parameter.minimum.index() == parameter.fallback.index() && parameter.choices.empty()) {
        EXPECT_LE(parameter.minimum, parameter.fallback) << spec.name << " " << parameter.name;
        EXPECT_LE(parameter.fallback, parameter.maximum) << spec.name << " " << parameter.name;
      }
    }
  }
}

}  // namespace
}  // namespace bubblesim::policies

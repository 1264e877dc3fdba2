// policies/README.md says the same as the declarations: one table row a parameter.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "policies/builtin.hpp"

namespace bubblesim::policies {
namespace {

using namespace policy;

std::string range(const ParameterSpec& parameter) {
  std::string words;
  for (const std::string& choice : parameter.choices) {
    words += (words.empty() ? "" : ", ") + choice;
  }
  if (std::holds_alternative<bool>(parameter.minimum)) return "true, false";
  if (std::holds_alternative<std::string>(parameter.minimum)) return words;
  const std::string numbers =
      value_text(parameter.minimum) + " to " + value_text(parameter.maximum);
  return words.empty() ? numbers : numbers + ", or " + words;
}

std::string row(const ParameterSpec& parameter) {
  return "| `" + parameter.name + "` | " + value_text(parameter.fallback) + " | " +
         range(parameter) + " | " + parameter.unit + " | " + parameter.help + " | " +
         parameter.source + " |\n";
}

std::string section(const PolicySpec& spec) {
  if (spec.parameters.empty()) return "### " + spec.name + "\n\nNo parameters.\n";
  std::string text = "### " + spec.name +
                     "\n\n| parameter | default | range | unit | meaning | source |\n"
                     "|---|---|---|---|---|---|\n";
  for (const ParameterSpec& parameter : spec.parameters) text += row(parameter);
  return text;
}

TEST(readme, holds_the_parameter_table_of_every_policy) {
  std::ifstream file(BUBBLESIM_SOURCE_DIR "/policies/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const Registry registry = policies::builtin_policies();
  for (const PolicySpec& spec : registry.all()) {
    EXPECT_NE(readme.find(section(spec)), std::string::npos) << "policies/README.md must hold:\n"
                                                             << section(spec);
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

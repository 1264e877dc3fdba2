#include "sim/plugin/policy_project.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bubblesim::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PolicyProject, HasFourFilesNamedAfterThePolicy) {
  const auto files = policy_project("token_gate");
  ASSERT_TRUE(files.has_value());
  std::vector<std::string> names;
  for (const ProjectFile& file : *files) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"CMakeLists.txt", "token_gate.cpp",
                                             "token_gate_test.cpp", "README.md"}));
}

TEST(PolicyProject, FillsInNameAndClassEverywhere) {
  const auto files = policy_project("token_gate");
  ASSERT_TRUE(files.has_value());
  for (const ProjectFile& file : *files) {
    EXPECT_THAT(file.text, AllOf(Not(HasSubstr("@NAME@")), Not(HasSubstr("@CLASS@")))) << file.name;
    EXPECT_THAT(file.text, HasSubstr("token_gate")) << file.name;
  }
  EXPECT_THAT((*files)[1].text, HasSubstr("class TokenGate final : public Policy"));
  EXPECT_THAT((*files)[1].text, HasSubstr("BUBBLESIM_POLICY_LIBRARY(token_gate_spec)"));
}

TEST(PolicyProject, RefusesNamesThatAreNoIdentifiersAndNoFiles) {
  for (const char* name : {"", "Gate", "2fast", "my-gate", "../gate", "a b", "gate\n"}) {
    const auto files = policy_project(name);
    ASSERT_FALSE(files.has_value()) << name;
    EXPECT_THAT(files.error().message, HasSubstr("expected a name in snake_case"));
  }
  EXPECT_FALSE(policy_project(std::string(65, 'a')).has_value());
  EXPECT_TRUE(policy_project(std::string(64, 'a')).has_value());
}

TEST(PolicyProject, RefusesWordsOfCppAndOfCMake) {
  for (const char* name : {"class", "static_assert", "test", "all", "bubblesim", "virtual"}) {
    const auto files = policy_project(name);
    ASSERT_FALSE(files.has_value()) << name;
    EXPECT_THAT(files.error().message, HasSubstr("a word of C++ or of CMake"));
  }
}

}  // namespace
}  // namespace bubblesim::plugin

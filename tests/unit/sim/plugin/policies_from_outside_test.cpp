#include <gmock/gmock.h>

#include "sim/plugin/load_policies.hpp"
#include "sim/plugin/policy_project.hpp"
#include "sim/policy/declare.hpp"
#include "tests/fault.hpp"

namespace bubblesim::plugin {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

TEST(PolicyProject, HasFourFilesNamedAfterThePolicy) {
  const auto files = must(policy_project("token_gate"));
  std::vector<std::string> names;
  for (const ProjectFile& file : files) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"CMakeLists.txt", "token_gate.cpp",
                                             "token_gate_test.cpp", "README.md"}));
}

TEST(PolicyProject, FillsInNameAndClassEverywhere) {
  const auto files = must(policy_project("token_gate"));
  for (const ProjectFile& file : files) {
    EXPECT_THAT(file.text, AllOf(Not(HasSubstr("@NAME@")), Not(HasSubstr("@CLASS@")))) << file.name;
    EXPECT_THAT(file.text, HasSubstr("token_gate")) << file.name;
  }
  EXPECT_THAT(files[1].text, HasSubstr("class TokenGate final : public Policy"));
  EXPECT_THAT(files[1].text, HasSubstr("BUBBLESIM_POLICY_LIBRARY(token_gate_spec)"));
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

using namespace policy;

class Idle final : public Policy {
 public:
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
};

PolicySpec good() {
  PolicySpec spec;
  spec.name = "gate_2";
  spec.summary = "A gate";
  spec.parameters = {declare_integer("tokens", 5, 1, 10, {})};
  spec.make = [](const ParameterSet&) { return std::make_unique<Idle>(); };
  return spec;
}

std::string fault_of(const PolicySpec& spec, const Registry& registry = {}) {
  const auto checked = check_spec(spec, registry);
  return checked ? "" : checked.error().message;
}

TEST(SpecCheck, ACompleteSpecPasses) { EXPECT_EQ(fault_of(good()), ""); }

TEST(SpecCheck, ATakenNameIsRefused) {
  Registry registry;
  registry.add(good());
  EXPECT_EQ(fault_of(good(), registry), "there is a policy of this name already");
}

TEST(SpecCheck, WhatIsMissingIsNamed) {
  PolicySpec spec = good();
  spec.summary.clear();
  EXPECT_EQ(fault_of(spec), "has no summary");
  spec = good();
  spec.make = nullptr;
  EXPECT_EQ(fault_of(spec), "has no function that makes it");
  spec = good();
  spec.name = "Gate";
  EXPECT_THAT(fault_of(spec), ::testing::HasSubstr("snake_case"));
}

TEST(SpecCheck, ParametersThatContradictThemselvesAreNamed) {
  PolicySpec spec = good();
  spec.parameters.front().fallback = std::int64_t{11};
  EXPECT_EQ(fault_of(spec),
            "parameter \"tokens\": its default is not allowed: found \"11\", expected 1 to 10");
  spec = good();
  spec.parameters.front().fallback = 5.0;
  EXPECT_EQ(fault_of(spec), "parameter \"tokens\": its default is of another type than its range");
  spec = good();
  spec.parameters.front().maximum = 10.0;
  EXPECT_EQ(fault_of(spec), "parameter \"tokens\": its minimum and maximum are of two types");
  spec = good();
  spec.parameters.push_back(spec.parameters.front());
  EXPECT_EQ(fault_of(spec), "declares the parameter \"tokens\" twice");
}

TEST(SpecCheck, WordsAndTextsPass) {
  PolicySpec spec = good();
  spec.parameters = {declare_device_duration("slice", Duration{1}, Duration{1000}, {}),
                     declare_choice("barrier", {"filler", "both"}, {}),
                     declare_flag("strict", false, {})};
  EXPECT_EQ(fault_of(spec), "");
}

}  // namespace
}  // namespace bubblesim::plugin

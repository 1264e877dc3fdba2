#include "sim/plugin/spec_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/policy/declare.hpp"

namespace bubblesim::plugin {
namespace {

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
  EXPECT_EQ(fault_of(spec),
            "parameter \"tokens\": its default is of another type than its range");
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

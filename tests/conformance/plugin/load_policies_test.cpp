// Libraries of policies: good ones work as policies of the tree do; bad ones are refused with file,
// what was found and what is needed, and leave the registry as it was.
#include "sim/plugin/load_policies.hpp"

#include <gmock/gmock.h>

#include <optional>

#include "policies/builtin.hpp"
#include "sim/policy/contract_version.hpp"
#include "sim/policy/testing/fake_driver.hpp"
#include "tests/fault.hpp"

namespace bubblesim::plugin {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::StartsWith;

const std::string kFolder = BUBBLESIM_LIBRARIES;

std::string library(const std::string& name) { return kFolder + "/lib" + name + ".so"; }

std::string fault_of(const std::string& path) {
  policy::Registry registry = policies::builtin_policies();
  const std::size_t before = registry.all().size();
  const auto loaded = load_policies(path, registry);
  EXPECT_EQ(registry.all().size(), before) << "a refused library leaves nothing behind";
  return loaded ? "" : loaded.error().text();
}

TEST(LoadPolicies, AddsAllOfALibraryInItsOrder) {
  policy::Registry registry;
  const auto names = must(load_policies(library("two_policies"), registry));
  EXPECT_THAT(names, ElementsAre("capped", "broken"));
  EXPECT_EQ(registry.all().size(), 2U);
}

TEST(LoadPolicies, ALoadedPolicyIsDrivenAsAnyOther) {
  policy::Registry registry;
  ASSERT_TRUE(load_policies(library("two_policies"), registry).has_value());
  testing::Scenario scenario;
  scenario.gpu.sm_count = 100;
  testing::Filler filler;
  filler.kernels = {{.blocks = 1, .length = Duration{10}}};
  filler.launches = 2;
  scenario.fillers = {filler};
  scenario.horizon = Duration{1000};
  const auto outcome = testing::drive(**registry.find("capped"), {"percentage=20"}, scenario);
  EXPECT_EQ(outcome.clients.at(0).sm_percentage, 100U);
  EXPECT_EQ(outcome.clients.at(1).sm_percentage, 20U);
  EXPECT_EQ(outcome.count(1, Duration{0}, Duration{1000}), 2U);
}

TEST(LoadPolicies, ACopyOfASpecKeepsItsLibrary) {
  std::optional<policy::PolicySpec> copy;
  {
    policy::Registry registry;
    ASSERT_TRUE(load_policies(library("two_policies"), registry).has_value());
    copy = **registry.find("capped");
  }
  const auto made = copy->make(policy::defaults(*copy));
  policy::ClientInfo filler;
  filler.id = ClientId{1};
  EXPECT_EQ(made->share(filler).sm_percentage, 30U);
}

TEST(LoadPolicies, AnotherVersionIsRefusedBeforeAnythingIsCalled) {
  const std::string needed = std::to_string(policy::kContractVersion);
  const std::string found = std::to_string(policy::kContractVersion + 1);
  EXPECT_EQ(fault_of(library("other_version")),
            library("other_version") + ": was built for version " + found +
                " of the policy contract, this program needs version " + needed +
                "; build it again");
}

TEST(LoadPolicies, AnotherAbiIsRefusedBeforeAnythingIsCalled) {
  EXPECT_THAT(fault_of(library("other_abi")),
              AllOf(StartsWith(library("other_abi")),
                    HasSubstr("for the ABI \"another library 64-bit\", this program needs \"lib")));
}

TEST(LoadPolicies, WhatIsNoLibraryIsRefused) {
  EXPECT_EQ(fault_of(kFolder + "/absent.so"), kFolder + "/absent.so: there is no such file");
  EXPECT_EQ(fault_of(kFolder), kFolder + ": there is no such file");
  EXPECT_THAT(fault_of(BUBBLESIM_SOURCE_DIR "/README.md"),
              AllOf(HasSubstr("README.md: cannot be loaded as a shared library"),
                    HasSubstr("invalid ELF header")));
  EXPECT_THAT(fault_of(library("no_symbol")),
              HasSubstr("is no library of policies: it does not export bubblesim_policy_library"));
}

TEST(LoadPolicies, ALibraryThatWasLinkedWronglySaysWhichSymbolItLacks) {
  EXPECT_EQ(fault_of(library("unlinked")),
            library("unlinked") + ": cannot be loaded as a shared library: it needs the symbol "
                                  "missing_function, which nothing that it is linked with has; "
                                  "expected a library that is linked as `bubblesim new-policy` "
                                  "does it");
}

TEST(LoadPolicies, AThrowingLibraryIsRefusedWithItsWords) {
  EXPECT_EQ(fault_of(library("throws")),
            library("throws") + ": threw while it declared its policies: no licence found");
}

TEST(LoadPolicies, ATakenNameRefusesTheWholeLibrary) {
  EXPECT_EQ(fault_of(library("taken_name")),
            library("taken_name") + ": policy \"mps\": there is a policy of this name already");
}

TEST(LoadPolicies, TheSameLibraryTwiceIsATakenName) {
  policy::Registry registry;
  ASSERT_TRUE(load_policies(library("two_policies"), registry).has_value());
  const auto again = error_of(load_policies(library("two_policies"), registry));
  EXPECT_THAT(again.text(), HasSubstr("policy \"capped\": there is a policy of this name"));
}

TEST(LoadPolicies, AnUnfinishedPolicyIsRefused) {
  EXPECT_THAT(fault_of(library("unfinished")),
              HasSubstr("policy \"unfinished\": has no function that makes it"));
}

TEST(FindPolicyLibrary, TakesPathsAsTheyAreAndNamesFromFolders) {
  const std::vector<std::string> folders{"/nowhere", kFolder};
  EXPECT_EQ(find_policy_library("some/path.so", folders), "some/path.so");
  EXPECT_EQ(find_policy_library("two_policies", folders), library("two_policies"));
  EXPECT_EQ(find_policy_library("libtwo_policies.so", folders), library("two_policies"));
  const auto absent = error_of(find_policy_library("absent", folders));
  EXPECT_EQ(absent.text(),
            "absent: there is no such file, and no libabsent.so in /nowhere, " + kFolder);
}

}  // namespace
}  // namespace bubblesim::plugin

// What policies demand of a system, against what they decide at the start.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/builtin.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::policies {
namespace {

using program::SharingMode;
using policy::SystemFeature;

struct Started {
  std::string name;
  policy::Sharing sharing;
  std::vector<SystemFeature> demanded;

  [[nodiscard]] bool demands(SystemFeature feature) const {
    return std::ranges::find(demanded, feature) != demanded.end();
  }
};

Started started(const policy::PolicySpec& spec, const policy::ParameterSet& parameters,
                const std::string& values) {
  policy::GpuInfo gpu;
  gpu.sm_count = 108;
  gpu.mig = {7, 8, 14};
  std::vector<policy::ClientInfo> clients(2);
  clients[0].role = policy::Role::kTraining;
  clients[1].id = ClientId{1};
  clients[1].role = policy::Role::kOffline;
  return {spec.name + " " + values, spec.make(parameters)->start(gpu, clients),
          policy::demanded(spec, parameters)};
}

/// Every policy with its defaults and with each other word of each parameter.
std::vector<Started> all_started() {
  std::vector<Started> all;
  const policy::Registry registry = builtin_policies();
  for (const policy::PolicySpec& spec : registry.all()) {
    if (spec.oracle || spec.name == "exclusive") continue;
    all.push_back(started(spec, policy::defaults(spec), "by default"));
    for (const policy::ParameterSpec& parameter : spec.parameters) {
      std::vector<std::string> words = parameter.choices;
      if (spec.name == "xsched" && parameter.name == "level") words = {"2", "3"};
      for (const std::string& word : words) {
        const policy::GivenParameter given{parameter.name, word};
        const auto set = policy::check_parameters(spec, {&given, 1}, "", "");
        EXPECT_TRUE(set) << spec.name << ' ' << parameter.name << ' ' << word;
        all.push_back(started(spec, *set, parameter.name + " " + word));
      }
    }
  }
  return all;
}

TEST(demands, have_the_feature_that_the_sharing_needs) {
  const auto all = all_started();
  ASSERT_GT(all.size(), 30U);
  for (const Started& one : all) {
    const SharingMode mode = one.sharing.mode;
    EXPECT_EQ(mode == SharingMode::kMps, one.demands(SystemFeature::kMps)) << one.name;
    EXPECT_EQ(mode == SharingMode::kTimeSliced, one.demands(SystemFeature::kTimeSlicing))
        << one.name;
    EXPECT_EQ(mode == SharingMode::kPartitioned, one.demands(SystemFeature::kMig)) << one.name;
    if (mode == SharingMode::kSpatial) {  // whoever is no client of one process goes through a hook
      EXPECT_TRUE(one.demands(SystemFeature::kOneProcess) ||
                  one.demands(SystemFeature::kLaunchInterception))
          << one.name;
    }
    if (one.sharing.unified_memory) {  // the driver's, or the framework's own allocator
      EXPECT_TRUE(one.demands(SystemFeature::kUnifiedMemory) ||
                  one.demands(SystemFeature::kFrameworkHook))
          << one.name;
    }
    if (one.sharing.changing_slices) {  // turns are the driver's, or training stops by itself
      EXPECT_TRUE(one.demands(SystemFeature::kDriverPatch) ||
                  one.demands(SystemFeature::kFrameworkHook))
          << one.name;
    }
  }
}

TEST(demands, are_told_by_parameter) {
  const policy::Registry registry = builtin_policies();
  EXPECT_EQ(policy::demands_text(**registry.find("exclusive")), "nothing");
  EXPECT_EQ(policy::demands_text(**registry.find("reef")),
            "launch_interception, rewritten_kernels (mode = reef), driver_patch (mode = reef or "
            "reset)");
  EXPECT_EQ(policy::demands_text(**registry.find("xsched")),
            "launch_interception, time_slicing (sharing = time_sliced), mps (sharing = spatial), "
            "rewritten_kernels (level = 2), time_slicing (level = 3), driver_patch (level = 3)");
}

TEST(demands, of_unknown_features_name_the_nearest) {
  const auto found = policy::find_feature("drivr_patch");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("did you mean \"driver_patch\"?"), std::string::npos)
      << found.error().message;
  for (const policy::FeatureText& text : policy::feature_texts()) {
    EXPECT_EQ(policy::find_feature(text.word).value(), text.feature);
  }
}

}  // namespace
}  // namespace bubblesim::policies

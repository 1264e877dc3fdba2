// What policies demand of a system, against what they decide at the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "policies/builtin.hpp"
#include "policies/iteration_reference.hpp"
#include "policies/resident_memory.hpp"
#include "policies/training_work.hpp"
#include "sim/base/input_file.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using namespace policy;
using policy::ClientInfo, policy::Role, policy::SystemFeature;
using program::SharingMode, program::WorkKind;

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
            "launch_interception, rewritten_kernels, driver_patch (mode = reef or reset)");
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

// What of each client's memory is on the device. A GPU of 80, training of 50, 5 kept free: 25 are
// left for fillers.
ResidentMemory resident(std::vector<std::uint64_t> fillers) {
  std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "t", Bytes{50}, true}};
  for (const std::uint64_t memory : fillers) {
    const auto id = static_cast<std::uint32_t>(clients.size());
    clients.push_back({ClientId{id}, Role::kOffline, "f", Bytes{memory}, true});
  }
  policy::GpuInfo gpu;
  gpu.memory = Bytes{80};
  ResidentMemory memory;
  memory.start(gpu, clients, Bytes{5});
  return memory;
}

TEST(resident_memory, gives_training_all_and_fillers_what_is_left_in_order) {
  const ResidentMemory memory = resident({10, 20, 30});
  EXPECT_EQ(memory.resident_of(ClientId{0}), Bytes{50});
  EXPECT_EQ(memory.resident_of(ClientId{1}), Bytes{10});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{15});  // 25 - 10
  EXPECT_EQ(memory.resident_of(ClientId{3}), Bytes{0});
}

TEST(resident_memory, hands_on_the_room_of_a_filler_that_ended) {
  ResidentMemory memory = resident({10, 20, 30});
  memory.remove(ClientId{1});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{20});
  EXPECT_EQ(memory.resident_of(ClientId{3}), Bytes{5});
}

TEST(resident_memory, keeps_no_room_for_a_filler_that_is_larger_than_the_device) {
  const ResidentMemory memory = resident({76, 20});
  EXPECT_EQ(memory.resident_of(ClientId{1}), Bytes{0});
  EXPECT_EQ(memory.resident_of(ClientId{2}), Bytes{20});
}

TEST(resident_memory, says_nothing_of_what_is_not_known) {
  ResidentMemory memory;
  const std::vector<ClientInfo> clients{{ClientId{0}, Role::kTraining, "t", {}, false},
                                        {ClientId{1}, Role::kOffline, "f", Bytes{10}, true}};
  memory.start({}, clients, Bytes{5});
  EXPECT_EQ(memory.resident_of(ClientId{0}), std::nullopt);
  EXPECT_EQ(memory.resident_of(ClientId{1}), std::nullopt);
  memory.remove(ClientId{1});
  EXPECT_EQ(memory.resident_of(ClientId{1}), std::nullopt);
}

policy::LaunchInfo training_launch(std::uint64_t number, WorkKind kind,
                                   std::uint32_t operations = 1) {
  policy::LaunchInfo info;
  info.kind = kind;
  info.launch = number;
  info.operations = operations;
  return info;
}

policy::CompletionInfo end_of(std::uint64_t launch, WorkKind kind = WorkKind::kKernel) {
  return {ClientId{0}, kind, launch};
}

TEST(training_work, counts_collectives_as_work_by_default) {
  TrainingWork work{Collectives::kWork};
  EXPECT_TRUE(work.launched(training_launch(1, WorkKind::kCollective)));
  EXPECT_FALSE(work.idle());
  EXPECT_FALSE(work.waits_for_peers());
  EXPECT_TRUE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.idle());
}

TEST(training_work, leaves_collectives_out_if_told) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_FALSE(work.launched(training_launch(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.waits_for_peers());
  EXPECT_TRUE(work.launched(training_launch(2, WorkKind::kKernel)));
  EXPECT_FALSE(work.waits_for_peers());
  EXPECT_FALSE(work.launched(training_launch(3, WorkKind::kCopy)));  // had work before
  EXPECT_FALSE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.ended(end_of(3, WorkKind::kCopy)));
  EXPECT_TRUE(work.ended(end_of(2)));
  EXPECT_TRUE(work.idle());
  EXPECT_FALSE(work.waits_for_peers());
}

TEST(training_work, leaves_copies_and_memsets_out_if_told) {
  TrainingWork work{Collectives::kWork, Copies::kIdle};
  EXPECT_FALSE(work.launched(training_launch(1, WorkKind::kCopy)));
  EXPECT_FALSE(work.launched(training_launch(2, WorkKind::kMemset)));
  EXPECT_TRUE(work.idle());
  EXPECT_TRUE(work.launched(training_launch(3, WorkKind::kKernel)));
  EXPECT_FALSE(work.ended(end_of(1, WorkKind::kCopy)));
  EXPECT_FALSE(work.idle());
  EXPECT_TRUE(work.ended(end_of(3)));
  EXPECT_TRUE(work.idle());
}

/// A graph of two kernels and a collective is three operations of work.
TEST(training_work, takes_a_graph_for_work_whatever_it_holds) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_TRUE(work.launched(training_launch(1, WorkKind::kKernel, 3)));
  EXPECT_TRUE(work.ended(end_of(1)));
  EXPECT_TRUE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_FALSE(work.idle());
  EXPECT_TRUE(work.ended(end_of(1)));
  EXPECT_TRUE(work.idle());
}

TEST(training_work, ignores_ends_that_it_does_not_know) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_FALSE(work.ended(end_of(7)));
  EXPECT_TRUE(work.idle());
}

// The length of an undisturbed iteration.
TEST(iteration_reference, is_the_median_of_the_first_iterations) {
  IterationReference reference({.iterations = 3, .longest = 1s});
  reference.add(90ms, 90ms);
  EXPECT_EQ(reference.value(), Duration{90ms});
  EXPECT_TRUE(reference.is_measuring(90ms));
  reference.add(50ms, 140ms);
  reference.add(60ms, 200ms);
  EXPECT_FALSE(reference.is_measuring(200ms));
  EXPECT_EQ(reference.value(), Duration{60ms});
  reference.add(10ms, 210ms);  // measured no more
  EXPECT_EQ(reference.value(), Duration{60ms});
}

TEST(iteration_reference, measures_nothing_if_given) {
  const IterationReference reference({.given = 70ms, .iterations = 3, .longest = 1s});
  EXPECT_FALSE(reference.is_measuring(0ms));
  EXPECT_EQ(reference.value(), Duration{70ms});
}

TEST(iteration_reference, gives_up_at_its_deadline) {
  IterationReference reference({.iterations = 3, .longest = 100ms});
  EXPECT_TRUE(reference.is_measuring(99ms));
  EXPECT_FALSE(reference.is_measuring(100ms));
  reference.add(50ms, 150ms);
  EXPECT_EQ(reference.value(), std::nullopt);
}

// policies/README.md names every policy, and what they declare is complete.
TEST(readme, has_a_row_of_every_policy) {
  const std::string readme = read_text_file(BUBBLESIM_SOURCE_DIR "/policies/README.md").value();
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

// Decisions before the start.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "sim/schedule/gpu_plan.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"
#include "tests/unit/sim/schedule/scripted_policy.hpp"

namespace bubblesim::schedule {
namespace {

using policy::Sharing;

policy::PolicySpec spec_named(const std::string& name) {
  policy::PolicySpec spec;
  spec.name = name;
  return spec;
}

hardware::GpuSpec gpu_of(std::uint32_t sms, std::uint32_t tpc_sms) {
  hardware::GpuSpec spec = gpu::small_gpu();
  spec.sm_count = sms;
  spec.tpc_sms = tpc_sms;
  spec.memory = Bytes{1000};
  spec.time_slice = std::chrono::milliseconds{1};
  spec.context_switch = std::chrono::microseconds{50};
  return spec;
}

// The training client holds 600 of 1000 bytes.
std::vector<policy::ClientInfo> clients(const std::vector<std::uint64_t>& fillers) {
  std::vector<policy::ClientInfo> result;
  result.push_back({ClientId{0}, policy::Role::kTraining, "job", Bytes{600}, true});
  for (const std::uint64_t memory : fillers) {
    const auto number = static_cast<std::uint32_t>(result.size());
    result.push_back({ClientId{number}, policy::Role::kOffline,
                      "filler " + std::to_string(number), Bytes{memory}, true});
  }
  return result;
}

std::vector<bool> admitted(const GpuPlan& plan) {
  std::vector<bool> result;
  for (const auto& admission : plan.decided.admissions) result.push_back(admission.admitted);
  return result;
}

class GpuPlanTest : public testing::Test {
 protected:
  Result<GpuPlan> plan(const std::vector<std::uint64_t>& fillers = {}) {
    return plan_gpu(spec_named("fake"), policy_, gpu_, clients(fillers));
  }
  std::string fault(const std::vector<std::uint64_t>& fillers = {}) {
    const auto result = plan(fillers);
    return result ? "accepted" : result.error().text();
  }
  ScriptedPolicy policy_;
  hardware::GpuSpec gpu_ = gpu_of(82, 2);
};

// 82 SMs in pairs: 50 % of 82 are 41, so 40; 1 % is less than a pair, so a pair; 99 % are 81.18.
TEST(SmCap, APercentageIsRoundedDownToWholeTpcs) {
  EXPECT_EQ(sm_cap(50, gpu_of(82, 2)), 40U);
  EXPECT_EQ(sm_cap(1, gpu_of(82, 2)), 2U);
  EXPECT_EQ(sm_cap(99, gpu_of(82, 2)), 80U);
  EXPECT_EQ(sm_cap(100, gpu_of(82, 2)), gpu::kAllSms);
  EXPECT_EQ(sm_cap(50, gpu_of(132, 2)), 66U);
  EXPECT_EQ(sm_cap(50, gpu_of(7, 1)), 3U);
  EXPECT_EQ(sm_cap(1, gpu_of(7, 1)), 1U);
}

// All percentages on the GPUs of the device files: never more than asked, beyond the first TPC,
// and never less for more.
TEST(SmCap, GrowsWithThePercentageAndNeverExceedsIt) {
  for (const std::uint32_t sms : {80U, 82U, 108U, 114U, 132U, 148U}) {
    std::uint32_t before = 0;
    for (std::uint32_t percentage = 1; percentage < 100; ++percentage) {
      const std::uint32_t cap = sm_cap(percentage, gpu_of(sms, 2));
      EXPECT_EQ(cap % 2, 0U);
      EXPECT_TRUE(cap == 2 || cap * 100 <= sms * percentage) << percentage << " % of " << sms;
      EXPECT_GE(cap, before);
      before = cap;
    }
  }
}

TEST_F(GpuPlanTest, ThePolicySeesTheGpuAndItsClients) {
  ASSERT_TRUE(plan({100, 100}));
  EXPECT_EQ(policy_.seen_gpu.sm_count, 82U);
  EXPECT_EQ(policy_.seen_gpu.memory, Bytes{1000});
  EXPECT_EQ(policy_.seen_gpu.time_slice, std::chrono::milliseconds{1});
  EXPECT_EQ(policy_.seen_clients, 3U);
}

TEST_F(GpuPlanTest, SharesBecomeCapsAndPriorities) {
  policy_.shares = {{100, 5}, {25, -1}};
  const auto result = plan({100});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->clients.size(), 2U);
  EXPECT_EQ(result->clients[0].sm_cap, gpu::kAllSms);
  EXPECT_EQ(result->clients[0].priority, 5);
  EXPECT_EQ(result->clients[1].name, "filler 1");
  EXPECT_EQ(result->clients[1].sm_cap, 20U);  // a quarter of 82 are 20.5
  EXPECT_EQ(result->clients[1].priority, -1);
  EXPECT_EQ(result->sharing.mode, program::SharingMode::kSpatial);
}

TEST_F(GpuPlanTest, TimeSlicesAreTheDevicesUnlessThePolicySaysOtherwise) {
  policy_.sharing.mode = program::SharingMode::kTimeSliced;
  auto result = plan();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->sharing.mode, program::SharingMode::kTimeSliced);
  EXPECT_EQ(result->sharing.slice, std::chrono::milliseconds{1});
  EXPECT_EQ(result->sharing.switch_cost, std::chrono::microseconds{50});
  policy_.sharing.slice = Duration{7};
  policy_.sharing.switch_cost = Duration{0};
  result = plan();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->sharing.slice, Duration{7});
  EXPECT_EQ(result->sharing.switch_cost, Duration{0});
}

// 600 + 300 fit into 1000; 200 more do not; 100 more do.
TEST_F(GpuPlanTest, FillersAreAdmittedInOrderWhileTheirMemoryFits) {
  const auto result = plan({300, 200, 100});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(policy_.used_at_admission, (std::vector<std::uint64_t>{600, 900, 900}));
  EXPECT_FALSE(result->decided.admissions[2].reason.empty());
}

TEST_F(GpuPlanTest, APolicyThatAdmitsWhatDoesNotFitIsOverruled) {
  policy_.admits = [](const policy::ClientInfo&) { return policy::Admission{}; };
  const auto result = plan({401});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, false}));
  EXPECT_EQ(result->decided.admissions[1].reason, "needs 401B, free are 400B");
}

TEST_F(GpuPlanTest, UnifiedMemoryMayBeOversubscribed) {
  policy_.sharing.unified_memory = true;
  policy_.admits = [](const policy::ClientInfo&) { return policy::Admission{}; };
  const auto result = plan({5000});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, true}));
  EXPECT_TRUE(result->decided.sharing.unified_memory);
}

TEST_F(GpuPlanTest, ARefusedFillerKeepsThePolicysReason) {
  policy_.admits = [](const policy::ClientInfo& filler) {
    return policy::Admission{filler.id.value != 1, "not today"};
  };
  const auto result = plan({100, 100});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(result->decided.admissions[1].reason, "not today");
}

// 600 + (2^64 - 1) is 599 if it wraps around.
TEST_F(GpuPlanTest, AnEnormousFillerDoesNotWrapAround) {
  const auto result = plan({std::numeric_limits<std::uint64_t>::max()});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, false}));
}

// A device whose memory is not known refuses nobody.
TEST_F(GpuPlanTest, UnknownDeviceMemoryRefusesNobody) {
  gpu_.memory = Bytes{};
  const auto result = plan({100});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, true}));
}

TEST_F(GpuPlanTest, IllegalDecisionsAreFaultsWithThePolicysName) {
  policy_.shares = {{100, 0}, {0, 0}};
  EXPECT_EQ(fault({100}),
            "policy fake: illegal decision at the start: 0 % of SMs for filler 1, allowed are "
            "1 to 100");
  policy_.shares = {{101, 0}};
  EXPECT_EQ(fault(),
            "policy fake: illegal decision at the start: 101 % of SMs for job, allowed are "
            "1 to 100");
  policy_.shares = {};
  policy_.sharing.mode = program::SharingMode::kTimeSliced;
  policy_.sharing.slice = Duration{0};
  EXPECT_EQ(fault(),
            "policy fake: illegal decision at the start: a time slice of 0, allowed is above 0");
  policy_.sharing.slice = Duration{1};
  policy_.sharing.switch_cost = Duration{-1};
  EXPECT_EQ(fault(), "policy fake: illegal decision at the start: a negative switch cost");
}

TEST_F(GpuPlanTest, AnUnknownSharingModeIsIllegal) {
  policy_.sharing.mode = static_cast<program::SharingMode>(77);
  EXPECT_EQ(fault(), "policy fake: illegal decision at the start: the unknown sharing mode 77");
}

TEST_F(GpuPlanTest, BoundsAreForOraclesOnly) {
  policy_.sharing.mode = program::SharingMode::kIdleOnly;
  EXPECT_THAT(fault(), testing::HasSubstr("only an oracle"));
  policy::PolicySpec oracle = spec_named("oracle");
  oracle.oracle = true;
  EXPECT_TRUE(plan_gpu(oracle, policy_, gpu_, clients({})));
}

TEST_F(GpuPlanTest, PartitionsMayNotExceedTheGpu) {
  policy_.sharing.mode = program::SharingMode::kPartitioned;
  policy_.shares = {{.sms = 56, .memory_share = 0.5}, {.sms = 28, .memory_share = 0.5}};
  EXPECT_THAT(fault({100}), testing::HasSubstr("28 SMs"));  // 82 - 56 are left
  policy_.shares = {{.sms = 42, .memory_share = 0.5}, {.sms = 28, .memory_share = 0.6}};
  EXPECT_THAT(fault({100}), testing::HasSubstr("left are 40 and 0.5"));
  policy_.shares = {{.sms = 42, .memory_share = 0.625}, {.sms = 28, .memory_share = 0.375}};
  const auto accepted = plan({100});
  ASSERT_TRUE(accepted) << accepted.error().text();
  EXPECT_EQ(accepted->clients[1].sm_cap, 28u);
  EXPECT_EQ(accepted->clients[1].bandwidth, 0.375);
}

TEST_F(GpuPlanTest, APartOfTheMemoryIsANumberFrom0To1) {
  policy_.sharing.mode = program::SharingMode::kPartitioned;
  for (const double part : {std::nan(""), -1.0, 1e300}) {
    policy_.shares = {{.sms = 42, .memory_share = 0.5}, {.sms = 28, .memory_share = part}};
    EXPECT_THAT(fault({100}), testing::HasSubstr("of the memory for filler 1, allowed are 0 to 1"));
  }
}

TEST_F(GpuPlanTest, AFillerLargerThanItsPartitionIsRefused) {
  policy_.sharing.mode = program::SharingMode::kPartitioned;
  policy_.shares = {{.sms = 42, .memory_share = 0.75}, {.sms = 28, .memory_share = 0.25}};
  const auto result = plan({251});  // a quarter of 1,000
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, false}));
}

TEST_F(GpuPlanTest, AMemoryLimitRefusesWhoNeedsMore) {
  policy_.shares = {{}, {.memory_limit = Bytes{99}}};
  const auto result = plan({100});
  ASSERT_TRUE(result);
  EXPECT_EQ(admitted(*result), (std::vector<bool>{true, false}));
  EXPECT_THAT(result->decided.admissions[1].reason, testing::HasSubstr("may allocate 99"));
}

TEST_F(GpuPlanTest, UnifiedMemoryIsResidentAsFarAsThereIsRoom) {
  policy_.sharing.unified_memory = true;
  policy_.admits = [](const policy::ClientInfo&) { return policy::Admission{}; };
  const auto result = plan({300, 300});  // 600 of 1,000 are the job's
  ASSERT_TRUE(result);
  EXPECT_EQ(result->decided.resident, (std::vector<Bytes>{Bytes{600}, Bytes{300}, Bytes{100}}));
}

}  // namespace
}  // namespace bubblesim::schedule

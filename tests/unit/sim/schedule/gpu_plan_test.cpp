// Decisions before the start.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "sim/schedule/gpu_plan.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"
#include "tests/unit/sim/schedule/driver_fixture.hpp"

namespace bubblesim::schedule {
namespace {

using PolicyActions = PolicyDriverTest;
using testing::HasSubstr;

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
  const auto result = must(plan({100}));
  ASSERT_EQ(result.clients.size(), 2U);
  EXPECT_EQ(result.clients[0].sm_cap, gpu::kAllSms);
  EXPECT_EQ(result.clients[0].priority, 5);
  EXPECT_EQ(result.clients[1].name, "filler 1");
  EXPECT_EQ(result.clients[1].sm_cap, 20U);  // a quarter of 82 are 20.5
  EXPECT_EQ(result.clients[1].priority, -1);
  EXPECT_EQ(result.sharing.mode, program::SharingMode::kSpatial);
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
  const auto result = must(plan({300, 200, 100}));
  EXPECT_EQ(admitted(result), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(policy_.used_at_admission, (std::vector<std::uint64_t>{600, 900, 900}));
  EXPECT_FALSE(result.decided.admissions[2].reason.empty());
}

TEST_F(GpuPlanTest, AdmissionIsThePolicysWithinTheDevicesMemory) {
  struct Row {
    const char* name;
    std::function<void()> change;
    std::vector<std::uint64_t> fillers;
    std::vector<bool> admitted;
    testing::Matcher<std::string> reason;  ///< of the first filler
  };
  const auto admit_all = [this] {
    policy_.admits = [](const policy::ClientInfo&) { return policy::Admission{}; };
  };
  const auto partition = [this] {
    policy_.sharing.mode = program::SharingMode::kPartitioned;
    policy_.shares = {{.sms = 42, .memory_share = 0.75}, {.sms = 28, .memory_share = 0.25}};
  };
  for (const Row& row : {
           Row{"a policy that admits what does not fit is overruled", admit_all, {401},
               {true, false}, "needs 401B, free are 400B"},
           {"unified memory may be oversubscribed",
            [&] {
              admit_all();
              policy_.sharing.unified_memory = true;
            },
            {5000}, {true, true}, ""},
           {"a refused filler keeps the policy's reason",
            [this] {
              policy_.admits = [](const policy::ClientInfo& filler) {
                return policy::Admission{filler.id.value != 1, "not today"};
              };
            },
            {100, 100}, {true, false, true}, "not today"},
           // 600 + (2^64 - 1) is 599 if it wraps around.
           {"an enormous filler does not wrap around", [] {},
            {std::numeric_limits<std::uint64_t>::max()}, {true, false}, testing::_},
           {"a device whose memory is not known refuses nobody",
            [this] { gpu_.memory = Bytes{}; }, {100}, {true, true}, testing::_},
           // A quarter of 1,000.
           {"a filler larger than its partition is refused", partition, {251}, {true, false},
            testing::_},
           {"a memory limit refuses who needs more",
            [this] { policy_.shares = {{}, {.memory_limit = Bytes{99}}}; }, {100}, {true, false},
            HasSubstr("may allocate 99")}}) {
    SCOPED_TRACE(row.name);
    policy_.sharing = {};
    policy_.shares.clear();
    policy_.admits = nullptr;
    gpu_.memory = Bytes{1000};
    row.change();
    const auto result = must(plan(row.fillers));
    EXPECT_EQ(admitted(result), row.admitted);
    EXPECT_THAT(result.decided.admissions[1].reason, row.reason);
    EXPECT_EQ(result.decided.sharing.unified_memory, policy_.sharing.unified_memory);
  }
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
  EXPECT_THAT(fault(), HasSubstr("only an oracle"));
  policy::PolicySpec oracle = spec_named("oracle");
  oracle.oracle = true;
  EXPECT_TRUE(plan_gpu(oracle, policy_, gpu_, clients({})));
}

TEST_F(GpuPlanTest, PartitionsMayNotExceedTheGpu) {
  policy_.sharing.mode = program::SharingMode::kPartitioned;
  policy_.shares = {{.sms = 56, .memory_share = 0.5}, {.sms = 28, .memory_share = 0.5}};
  EXPECT_THAT(fault({100}), HasSubstr("28 SMs"));  // 82 - 56 are left
  policy_.shares = {{.sms = 42, .memory_share = 0.5}, {.sms = 28, .memory_share = 0.6}};
  EXPECT_THAT(fault({100}), HasSubstr("left are 40 and 0.5"));
  policy_.shares = {{.sms = 42, .memory_share = 0.625}, {.sms = 28, .memory_share = 0.375}};
  const auto accepted = must(plan({100}));
  EXPECT_EQ(accepted.clients[1].sm_cap, 28u);
  EXPECT_EQ(accepted.clients[1].bandwidth, 0.375);
}

TEST_F(GpuPlanTest, APartOfTheMemoryIsANumberFrom0To1) {
  policy_.sharing.mode = program::SharingMode::kPartitioned;
  for (const double part : {std::nan(""), -1.0, 1e300}) {
    policy_.shares = {{.sms = 42, .memory_share = 0.5}, {.sms = 28, .memory_share = part}};
    EXPECT_THAT(fault({100}), HasSubstr("of the memory for filler 1, allowed are 0 to 1"));
  }
}

TEST_F(GpuPlanTest, UnifiedMemoryIsResidentAsFarAsThereIsRoom) {
  policy_.sharing.unified_memory = true;
  policy_.admits = [](const policy::ClientInfo&) { return policy::Admission{}; };
  const auto result = plan({300, 300});  // 600 of 1,000 are the job's
  ASSERT_TRUE(result);
  EXPECT_EQ(result->decided.resident, (std::vector<Bytes>{Bytes{600}, Bytes{300}, Bytes{100}}));
}

// What a policy does to running work, put into effect by the driver. Times in us.
program::Program two_kernels() {
  return ProgramMaker().kernel(10, 30).kernel(0, 30).end().program();
}

// The filler's kernels would run 10 - 40 - 70. Driven off at 20 and let on at 100: after a kernel,
// the first ends and the second waits; by a reset, the first begins anew.
class Preempted : public PolicyDriverTest, public testing::WithParamInterface<program::Preemption> {
};

TEST_P(Preempted, goes_on_when_it_may_proceed) {
  policy_.ticks = {us(20), us(100)};
  policy_.tick_rule = [this](policy::Actions& actions) {
    if (policy_.ticks.empty()) return actions.proceed(kFiller);
    actions.preempt(kFiller, GetParam());
  };
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_EQ(spans(1), GetParam() == program::Preemption::kAfterKernel
                          ? (Spans{{10, 40}, {100, 130}})
                          : (Spans{{10, 130}, {130, 160}}));
  EXPECT_EQ(driver_->session().counts().preemptions, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, Preempted,
                         testing::Values(program::Preemption::kAfterKernel,
                                         program::Preemption::kReset));

/// What a policy may not do, and the fault that ends the run.
struct Illegal {
  const char* name;
  std::function<void(policy::Actions&)> act;
  const char* fault;
};

class IllegalAction : public PolicyDriverTest, public testing::WithParamInterface<Illegal> {};

TEST_P(IllegalAction, ends_the_run) {
  memory_ = Bytes{1000};
  at_tick(us(20), GetParam().act);
  run({one_kernel(500, 1), two_kernels()});
  EXPECT_THAT(fault(), HasSubstr(GetParam().fault));
}

const Illegal kIllegal[] = {
    {"switching_a_context_away_where_contexts_take_no_turns",
     [](policy::Actions& actions) {
       actions.preempt(kFiller, program::Preemption::kContextSwitch);
     },
     "contexts do not take turns"},
    {"setting_slices_where_contexts_take_no_turns",
     [](policy::Actions& actions) { actions.set_time_slice(kFiller, us(5)); },
     "contexts do not take turns"},
    {"a_form_that_is_faster", [](policy::Actions& actions) { actions.reshape(kFiller, {0, 0.5}); },
     "to a slowdown of 0.5, allowed are 1 to 1000"},
    {"more_memory_than_a_client_has",
     [](policy::Actions& actions) { actions.set_resident_memory(kFiller, Bytes{1001}); }, "1001"},
    {"a_client_that_does_not_exist",
     [](policy::Actions& actions) {
       actions.preempt(ClientId{7}, program::Preemption::kAfterBlocks);
     },
     "client 7"},
};

INSTANTIATE_TEST_SUITE_P(All, IllegalAction, testing::ValuesIn(kIllegal),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(PolicyActions, slices_take_effect_under_time_slicing) {
  sharing_ = {program::SharingMode::kTimeSliced, us(1000), us(0)};
  at_tick(us(1), [](policy::Actions& actions) { actions.set_time_slice(kFiller, us(10)); });
  // The filler runs from 5 on; the job's first slice begins when the filler's of 10 has ended.
  run({one_kernel(10, 30), one_kernel(5, 30)});
  EXPECT_EQ(fault(), "none");
  EXPECT_EQ(spans(0), (Spans{{15, 45}}));
  EXPECT_EQ(spans(1), (Spans{{5, 65}}));
}

// Twice as long, and on one block at a time: of 2 blocks that fit together, 30 each.
TEST_F(PolicyActions, reshape_the_launch_that_goes_on_and_no_other) {
  program::Program filler = two_kernels();
  for (auto& profile : filler.profiles) profile.blocks = 2;
  policy_.launch_rule = [](const policy::LaunchInfo& launch, policy::Actions& actions) {
    if (launch.client == kFiller && launch.launch == 1) actions.reshape(kFiller, {1, 2.0});
    return policy::Verdict::kAdmit;
  };
  run({one_kernel(500, 1), filler});
  EXPECT_EQ(spans(1), (Spans{{10, 130}, {130, 160}}));
  EXPECT_EQ(driver_->session().counts().reshaped, 1u);
}

TEST_F(PolicyActions, a_held_launch_keeps_its_form_until_it_is_released) {
  hold_fillers();
  at_tick(us(50), [](policy::Actions& actions) {
    actions.reshape(kFiller, {0, 3.0});
    actions.release(kFiller);
  });
  run({one_kernel(500, 1), one_kernel(10, 30)});
  EXPECT_EQ(spans(1), (Spans{{50, 140}}));
}

// Half of 1,000 bytes moves out over 1e6 B/s: 500 us. A kernel that asks for a tenth of 2e7 B/s of
// DRAM then fetches half of its 2e6 B/s over the link, which takes as long as it lasts: no loss. At
// a tenth of the link it takes ten times as long.
TEST_F(PolicyActions, memory_behind_the_host_link_slows_kernels_that_start_then) {
  memory_ = Bytes{1000};
  gpu_spec_.dram_bandwidth = {2e7};
  gpu_spec_.host_bandwidth = {1e5};
  program::Program filler = ProgramMaker().kernel(10, 30).kernel(9000, 30).end().program();
  for (auto& profile : filler.profiles) profile.dram_share = 0.1;
  at_tick(us(1), [](policy::Actions& actions) {
    actions.set_resident_memory(kFiller, Bytes{500});
  });
  run({one_kernel(50, 1), filler});
  EXPECT_EQ(spans(1), (Spans{{10, 40}, {9010, 9310}}));
  EXPECT_EQ(driver_->session().counts().migrated, Bytes{500});
}

}  // namespace
}  // namespace bubblesim::schedule

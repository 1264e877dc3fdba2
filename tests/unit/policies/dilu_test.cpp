// What Dilu's launch hook sees.
#include <gtest/gtest.h>

#include <vector>

#include "policies/builtin.hpp"
#include "policies/burst_history.hpp"
#include "policies/dilu_rckm.hpp"
#include "policies/launch_polls.hpp"
#include "tests/conformance/policies/no_actions.hpp"

namespace bubblesim::policies {
namespace {

using TaskKind = RckmTask::Kind;
using Reaction = BurstHistory::Reaction;
using namespace policy;
using namespace std::chrono_literals;
using policy::Verdict;

TEST(dilu, holds_training_for_its_debt_but_neither_holds_nor_counts_graphs) {
  const policy::PolicySpec spec = dilu_spec();
  const auto dilu = spec.make(policy::defaults(spec));
  const std::vector<policy::ClientInfo> clients(1);
  dilu->start({}, clients);
  testing::NoActions actions;
  const auto verdict = [&](std::uint64_t blocks, std::uint32_t operations) {
    policy::LaunchInfo launch;
    launch.blocks = blocks;
    launch.operations = operations;
    return dilu->on_launch(launch, policy::Instant{}, actions);
  };
  // A graph of a million kernels: cuGraphLaunch is no call that the hook knows.
  EXPECT_EQ(verdict(1'000'000'000'000, 1'000'000), Verdict::kAdmit);
  EXPECT_EQ(verdict(1'000'000'000'000, 1), Verdict::kAdmit);  // test before add
  EXPECT_EQ(verdict(1, 1), Verdict::kHold);
  EXPECT_EQ(verdict(1'000'000, 2), Verdict::kAdmit);
}

// Dilu's token server. A whole GPU is 1000 blocks a period, the conservative quota starts at 100.
// A service has request 0.3 and limit 0.6, training 0.4 and 0.9.
RckmConstants small_rckm() {
  RckmConstants result = rckm_constants(policy::defaults(dilu_spec()));
  result.upper_blocks = 1000;
  result.initial_blocks = 100;
  return result;
}

constexpr RckmTask kService{TaskKind::kSensitive, 0.3, 0.6};
constexpr RckmTask kTraining{TaskKind::kThrottled, 0.4, 0.9};

DiluRckm server_of(const std::vector<RckmTask>& tasks) {
  DiluRckm result(small_rckm());
  for (const RckmTask& task : tasks) result.connect(task);
  return result;
}

/// A service, task 0, beside training, task 1.
DiluRckm server(TaskKind kind = TaskKind::kSensitive) {
  return server_of({{kind, 0.3, 0.6}, kTraining});
}

std::int64_t periods(DiluRckm& server, int count, std::int64_t blocks) {
  std::int64_t grant = 0;
  for (int i = 0; i < count; ++i) grant = server.report(0, blocks);
  return grant;
}

void burst(DiluRckm& server, int length) {
  periods(server, length, 50);
  periods(server, 1, 0);
}

TEST(dilu_rckm, grants_training_the_whole_gpu_before_a_service_reports) {
  DiluRckm alone(small_rckm());
  alone.connect(kTraining);
  EXPECT_EQ(alone.grant(0), 1000);
  alone.connect(kTraining);
  EXPECT_EQ(alone.grant(1), 500);  // by requests
}

TEST(dilu_rckm, shares_the_conservative_quota_by_request) {
  DiluRckm two = server();
  two.connect({TaskKind::kThrottled, 0.1, 0.2});
  periods(two, 1, 50);  // the pool: 100 (0.4 + 0.1) = 50
  EXPECT_EQ(two.report(1, 0), 40);
  EXPECT_EQ(two.report(2, 0), 10);
}

TEST(dilu_rckm, grants_a_block_a_period_at_least_so_that_every_debt_ends) {
  RckmConstants few = small_rckm();
  few.initial_blocks = 1;
  DiluRckm tight(few);
  tight.connect(kService);
  tight.connect(kTraining);
  tight.report(0, 50);  // the pool: 1 x 0.4
  EXPECT_EQ(tight.grant(1), 1);
}

/// Busy until 10 idle periods; the request then, or if a throttled process has blocks left over.
TEST(dilu_rckm, grants_a_service_its_limit_only_where_nobody_is_in_its_way) {
  DiluRckm rckm = server();
  EXPECT_EQ(periods(rckm, 10, 0), 300);
  EXPECT_EQ(periods(rckm, 1, 0), 600);  // the eleventh
  rckm.report(1, 5);
  EXPECT_EQ(periods(rckm, 1, 0), 300);
  rckm.report(1, 0);
  EXPECT_EQ(periods(rckm, 1, 0), 600);
}

/// 100 idle periods: conservative; up to 120: as it was; then the limits, and the whole quota.
TEST(dilu_rckm, scales_training_up_after_long_idleness) {
  DiluRckm rckm = server();
  periods(rckm, 120, 0);
  EXPECT_EQ(rckm.report(1, 0), 40);  // 100 * 0.4
  periods(rckm, 1, 0);
  EXPECT_EQ(rckm.report(1, 0), 900);
  EXPECT_EQ(rckm.quota(), 1000);
}

/// As coded: a service that was idle for 10 periods at most does not keep another one's 121 from
/// lifting the limit; one that was idle for 11 does.
TEST(dilu_rckm, lets_a_busy_service_not_veto_the_scaling_up) {
  DiluRckm two = server_of({kService, kTraining, kService});
  two.report(2, 50);
  periods(two, 121, 0);
  EXPECT_EQ(two.report(1, 0), 900);
  DiluRckm vetoed = server_of({kService, kTraining, kService});
  for (int i = 0; i < 11; ++i) vetoed.report(2, 0);
  periods(vetoed, 121, 0);
  EXPECT_EQ(vetoed.report(1, 0), 40);
}

/// A burst of 10, then one of 20: inflated by 2, 100 / 2. Then of 45: 4.5 is another kind.
TEST(dilu_rckm, divides_the_quota_by_the_inflation_in_an_emergency) {
  DiluRckm rckm = server();
  burst(rckm, 10);
  burst(rckm, 20);
  EXPECT_EQ(rckm.quota(), 50);
  burst(rckm, 45);
  EXPECT_EQ(rckm.quota(), 50);
  burst(rckm, 14);  // 1.4: contention
  EXPECT_EQ(rckm.quota(), 50);
}

/// The floor: 1000 * 0.4 * 0.01 = 4. 100, 33, 11, then 11 / 3 = 3 is below it.
TEST(dilu_rckm, leaves_training_a_floor) {
  DiluRckm rckm = server();
  burst(rckm, 10);
  for (const double quota : {33.0, 11.0, 4.0}) {
    burst(rckm, 30);
    EXPECT_EQ(rckm.quota(), quota);
  }
  EXPECT_GT(rckm.report(1, 0), 0);
}

/// Every fifth burst of its own length: 130, then whole numbers: 169.
TEST(dilu_rckm, recovers_every_five_bursts) {
  DiluRckm rckm = server();
  for (int i = 0; i < 5; ++i) burst(rckm, 10);
  EXPECT_EQ(rckm.quota(), 130);
  for (int i = 0; i < 5; ++i) burst(rckm, 10);
  EXPECT_EQ(rckm.quota(), 169);
}

/// 13 over 10 is 1.3: a language model's emergency, but no other service's. Its floor is compared
/// at 0.4, so 1 is still above it.
TEST(dilu_rckm, is_stricter_with_language_models) {
  DiluRckm other = server();
  burst(other, 10);
  burst(other, 13);
  EXPECT_EQ(other.quota(), 100);
  DiluRckm llm = server(TaskKind::kLanguageModel);
  burst(llm, 10);
  burst(llm, 13);
  EXPECT_EQ(llm.quota(), 76);                         // 100 / 1.3
  for (const double quota : {25.0, 8.0, 2.0, 4.0}) {  // 2/3 = 0 is below 0.4: the floor of 4
    burst(llm, 30);
    EXPECT_EQ(llm.quota(), quota);
  }
}

TEST(dilu_rckm, gives_the_rest_when_a_service_leaves) {
  DiluRckm two = server();
  two.connect(kService);
  periods(two, 1, 50);
  two.disconnect(0);
  EXPECT_EQ(two.quota(), 700);       // 1 - 0.3 of the other one
  EXPECT_EQ(two.report(1, 0), 630);  // of it the limit
}

// Bursts, their references and what their inflation leads to.
TEST(burst_history, takes_the_shortest_of_all_time_above_the_least_length) {
  BurstHistory history({.shortest_burst = 6});
  history.add(6);
  EXPECT_EQ(history.shortest(), 0);
  history.add(9);
  history.add(7);
  history.add(8);
  EXPECT_EQ(history.shortest(), 7);
}

TEST(burst_history, forgets_bursts_beyond_its_length) {
  BurstHistory history({.history = 3});
  history.add(1);
  EXPECT_EQ(history.shortest_recent(), 2);  // never less than 2
  for (const int length : {5, 4, 6}) history.add(length);
  EXPECT_EQ(history.shortest_recent(), 4);
  for (const int length : {8, 9}) history.add(length);
  EXPECT_EQ(history.shortest_recent(), 6);
}

TEST(burst_history, cuts_between_two_inflations_and_recovers_at_every_fifth_burst) {
  BurstHistory history({});
  for (int i = 0; i < 4; ++i) history.add(10);
  EXPECT_EQ(history.react(1.6), Reaction::kCut);
  EXPECT_EQ(history.react(3.9), Reaction::kCut);
  EXPECT_EQ(history.react(4.0), Reaction::kKeep);
  EXPECT_EQ(history.react(1.0), Reaction::kKeep);
  history.add(10);  // the fifth
  EXPECT_EQ(history.react(1.19), Reaction::kRecover);
  EXPECT_EQ(history.react(1.2), Reaction::kKeep);
}

/// Remembers what was released.
class Recorder final : public testing::NoActions {
 public:
  void release(ClientId client) override { released.push_back(client.value); }
  std::size_t held(ClientId) const override { return 1; }
  std::vector<std::uint32_t> released;
};

TEST(launch_polls, wake_each_thread_a_period_after_it_was_held) {
  LaunchPolls polls(10ms);
  Recorder actions;
  polls.hold(ClientId{1}, 0ms);
  polls.hold(ClientId{2}, 3ms);
  EXPECT_EQ(polls.next(), Duration{10ms});
  polls.wake(10ms, actions, [](const LaunchInfo&) { return true; });
  EXPECT_EQ(actions.released, std::vector<std::uint32_t>{1});
  EXPECT_EQ(polls.next(), Duration{13ms});
}

}  // namespace
}  // namespace bubblesim::policies

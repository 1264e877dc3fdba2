// Continuous batching: requests join and leave between iterations. Times in us.
#include "sim/workload/continuous_service.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

struct Reply {
  std::uint64_t number = 0;
  std::int64_t start = 0;
  std::int64_t first_token = 0;
  std::int64_t end = 0;
  friend bool operator==(const Reply&, const Reply&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Reply& reply) {
    return out << "{" << reply.number << ": " << reply.start << " " << reply.first_token << " "
               << reply.end << "}";
  }
};

/// Prompts of up to 100 and 200 tokens take 20 and 30; a step of up to 1, 2 and 4 sequences 10, 12
/// and 14. Requests have a prompt of 100 and 3 tokens of output.
class ContinuousServiceTest : public testing::Test, public ServiceListener, public RunObserver {
 protected:
  void make(std::uint32_t most, std::uint64_t cache_tokens) {
    ProgramMaker maker;
    std::uint32_t op = 0;
    for (const std::int64_t span : {20, 30, 10, 12, 14}) {
      if (op > 0) maker.thread();
      maker.kernel(0, span).wait_op(0, op++, 0).end();
    }
    program_ = maker.program();
    table_.prompt_tokens = {100, 200};
    table_.sequences = most == 2 ? std::vector<std::uint32_t>{1, 2}
                                 : std::vector<std::uint32_t>{1, 2, 4};
    table_.cache_tokens = cache_tokens;
    table_.length = {100, 3};
    RunSetup run;
    run.repeat = Repeat::kOnePass;
    run.observer = this;
    run_.emplace(engine_, gpu_, program_, run);
    service_.emplace(*run_, table_, *this);
  }
  void arrive_at(const std::vector<std::int64_t>& times) {
    std::uint64_t number = 0;
    for (const std::int64_t at : times) {
      script_.at(at * 1000, [this, at, number] {
        service_->arrive(number, kSimStart + us(at));
      });
      ++number;
    }
  }
  void run(std::int64_t until = 1'000'000) { engine_.run_until(kSimStart + us(until)); }

  void on_pass_finished(ProgramRun&, SimTime now) override { service_->pass_finished(now); }
  void on_served(const ServedRequest& request) override {
    served_.push_back({request.number, microseconds(request.start),
                       microseconds(*request.first_token), microseconds(request.end)});
  }
  void on_batch(std::uint64_t, SimTime) override { ++iterations_; }

  engine::Engine engine_;
  gpu::Gpu gpu_{engine_, plain_gpu(), gpu::SharingSetup{}};
  gpu::Script script_{engine_};
  program::Program program_;
  IterationTable table_;
  std::optional<ProgramRun> run_;
  std::optional<ContinuousService> service_;
  std::vector<Reply> served_;
  int iterations_ = 0;
};

// Prompt 0 to 20, steps to 30 and 40; the second finds it idle.
TEST_F(ContinuousServiceTest, ARequestAloneIsItsPromptAndAStepAToken) {
  make(4, 1000);
  arrive_at({0, 100});
  run();
  EXPECT_EQ(served_, (std::vector<Reply>{{0, 0, 20, 40}, {1, 100, 120, 140}}));
  EXPECT_EQ(iterations_, 6);
}

// The first's prompt until 20; the other two's together until 50; then steps of three until 64, 78.
TEST_F(ContinuousServiceTest, RequestsJoinBetweenIterationsAndTheirPromptsRunTogether) {
  make(4, 1000);
  arrive_at({0, 5, 6});
  run();
  EXPECT_EQ(served_, (std::vector<Reply>{{0, 0, 20, 78}, {1, 20, 50, 78}, {2, 20, 50, 78}}));
}

// 1 joins at 20; 2 has no place until 64, when both have three tokens.
TEST_F(ContinuousServiceTest, NoMoreSequencesRunThanTheTableHas) {
  make(2, 1000);
  arrive_at({0, 5, 6});
  run();
  EXPECT_EQ(served_, (std::vector<Reply>{{0, 0, 20, 64}, {1, 20, 40, 64}, {2, 64, 84, 104}}));
}

// Each needs 103 of 205 tokens: one at a time.
TEST_F(ContinuousServiceTest, ARequestWaitsForRoomInTheCache) {
  make(4, 205);
  arrive_at({0, 5});
  run();
  EXPECT_EQ(served_, (std::vector<Reply>{{0, 0, 20, 40}, {1, 40, 60, 80}}));
}

// 1 arrives while 0 decodes (20 to 30): its prompt 30 to 50, then a step of two until 62, where 0
// leaves and 1 goes on alone until 72.
TEST_F(ContinuousServiceTest, ARequestLeavesAsSoonAsItIsDone) {
  make(4, 1000);
  arrive_at({0, 25});
  run();
  EXPECT_EQ(served_, (std::vector<Reply>{{0, 0, 20, 62}, {1, 30, 50, 72}}));
}

// Places of 2: both join at once (30), two steps of 12: 2 requests each 54.
TEST_F(ContinuousServiceTest, OfflineAllPlacesAreAlwaysTaken) {
  make(2, 1000);
  service_->start_offline(kSimStart);
  run(54 * 10);
  EXPECT_EQ(served_.size(), 20U);
}

TEST_F(ContinuousServiceTest, UnfinishedRequestsAreThoseThatRunAndWait) {
  make(2, 1000);
  arrive_at({0, 5, 6});
  run(45);
  EXPECT_EQ(service_->queued(), 1U);
  EXPECT_EQ(service_->serving(0), 0U);
  EXPECT_EQ(service_->unfinished().size(), 3U);
}

TEST(IterationTable, RoundsUpToBucketsAndTakesTheMeanContext) {
  IterationTable table;
  table.prompt_tokens = {16, 32};
  table.sequences = {1, 2, 4};
  table.contexts = 3;
  EXPECT_EQ(table.prompt_thread(1), 0U);
  EXPECT_EQ(table.prompt_thread(17), 1U);
  EXPECT_EQ(table.threads(), 2U + 9U);
  EXPECT_EQ(table.decode_thread(1, 255), 2U);
  EXPECT_EQ(table.decode_thread(1, 256), 3U);
  EXPECT_EQ(table.decode_thread(3, 3 * 300), 2U + 2 * 3 + 1);
  EXPECT_EQ(table.decode_thread(4, 4 * 5000), 2U + 2 * 3 + 2);
}

}  // namespace
}  // namespace bubblesim::workload

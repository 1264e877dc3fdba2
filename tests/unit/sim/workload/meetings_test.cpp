// How long a run surely arrives at no collective. Times in us; bounds keep a thousandth back.
#include <gtest/gtest.h>

#include "sim/workload/meeting_table.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

SimTime at_ns(std::int64_t nanoseconds) { return kSimStart + Duration{nanoseconds}; }

/// Kernels of 10, 20 and 30 on stream 0; on stream 1 a collective after the second, one after the
/// third, of 5 each.
ProgramMaker two_meetings() {
  ProgramMaker maker(2);
  maker.kernel(0, 10).kernel(0, 20).collective(0, 5, 0, 1).after(1, 0);
  maker.kernel(0, 30).collective(0, 5, 1, 1).after(3, 0);
  return maker;
}

/// The other rank: it arrives when the test says so.
class Other final : public network::Participant {
 public:
  void on_all_arrived(std::uint64_t, SimTime) override {}
};

class Meetings : public testing::Test {
 protected:
  explicit Meetings(ProgramMaker maker = two_meetings())
      : maker_(std::move(maker)), rendezvous_(std::vector<std::uint32_t>{2, 2}),
        gpu_(engine_, plain_gpu(), {}) {
    setup_.rendezvous = &rendezvous_;
  }
  ProgramRun& run() {
    if (!run_) {
      run_ = std::make_unique<ProgramRun>(engine_, gpu_, maker_.program(), setup_);
      run_->start_pass(kSimStart);
    }
    return *run_;
  }
  // Of the only stream with collectives; max(): it arrives nowhere.
  static SimTime next_of(const ProgramRun& program_run, SimTime now) {
    std::vector<NextMeeting> next;
    program_run.next_meetings(now, next);
    return next.empty() ? SimTime::max() : next.front().earliest;
  }
  SimTime bound_at(std::int64_t microsecond) {
    ProgramRun& program_run = run();
    engine_.run_until(at(microsecond));
    return next_of(program_run, at(microsecond));
  }

  ProgramMaker maker_;
  engine::Engine engine_;
  network::Rendezvous rendezvous_;
  gpu::Gpu gpu_;
  RunSetup setup_;
  Other other_;
  std::unique_ptr<ProgramRun> run_;
};

TEST_F(Meetings, ComeNoSoonerThanTheWorkBeforeThemTakes) {
  EXPECT_EQ(next_of(run(), kSimStart), at_ns(29'970));  // 10 + 20
  EXPECT_EQ(bound_at(12), at_ns(29'980));     // the second kernel, 20, began at 10
}

TEST_F(Meetings, AreNotReachedWhileAnotherHoldsTheirStream) {
  EXPECT_EQ(bound_at(31), SimTime::max());
}

TEST_F(Meetings, FollowTheEndOfTheOneBefore) {
  EXPECT_EQ(bound_at(50), SimTime::max());
  rendezvous_.arrive(0, other_, 0, at(50));  // it ends at 55, the third kernel at 60
  EXPECT_EQ(bound_at(52), at_ns(59'970));  // which, 30, began at 30
}

TEST_F(Meetings, OfTheNextPassComeAfterAllOfThisOne) {
  (void)bound_at(50);
  rendezvous_.arrive(0, other_, 0, at(50));
  (void)bound_at(70);
  rendezvous_.arrive(1, other_, 0, at(70));  // the second ends at 75; stream 0 has begun anew at 60
  EXPECT_EQ(bound_at(71), at_ns(89'980));    // the second kernel, 20, began at 70
}

TEST_F(Meetings, MayComeAtOnceIfTheRankIsFasterThanItsProgram) {
  setup_.perturbation.slowdown = 0.5;
  EXPECT_EQ(next_of(run(), kSimStart), kSimStart);
}

TEST(MeetingTable, OfAProgramWithoutMeetingsIsEmpty) {
  ProgramMaker maker;
  maker.kernel(0, 10);
  const MeetingTable table = meeting_table(maker.program());
  EXPECT_TRUE(table.with_meetings.empty());
  EXPECT_EQ(table.streams.at(0).pass, us(10));
}

TEST(MeetingTable, IsNotKnownIfThreadsShareTheStreamOfAMeeting) {
  ProgramMaker maker;
  maker.collective(0, 5, 0).thread().kernel(0, 10);
  EXPECT_FALSE(meeting_table(maker.program()).known);
}

// Iterations of 2 + 3 and of 7, the first cut by the pass's begin.
TEST(LeastIteration, IsTheHostsOwnTimeBetweenEnds) {
  ProgramMaker maker;
  maker.iterations(2).iteration(0).kernel(2, 50).cost(3).iteration(1).kernel(7, 50).end();
  EXPECT_EQ(least_iteration(maker.program()), us(5));
}

}  // namespace
}  // namespace bubblesim::workload

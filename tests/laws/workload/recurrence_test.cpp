// A job alone by its recurrence is the job alone event by event: the same end of every operation,
// to the nanosecond, for jobs made at random of everything that programs have.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/workload/lone_job.hpp"
#include "sim/workload/recurrence.hpp"
#include "sim/workload/replay.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

/// What the events say of one rank.
class Watch final : public RunObserver {
 public:
  Watch(const program::Program& program, std::uint32_t passes) : passes_(program.ops.size()) {
    times.op_ends.resize(passes * program.ops.size(), SimTime::max());
  }
  void on_iteration(ProgramRun&, std::uint32_t, SimTime now) override {
    times.marks.push_back(now);
  }
  void on_op_finished(const OpRecord& record) override {
    times.op_ends[passes_[record.op]++ * passes_.size() + record.op] = record.end;
    times.last_op_end = record.end;
  }
  void on_pass_finished(ProgramRun&, SimTime now) override { times.end = now; }

  PassTimes times;

 private:
  std::vector<std::size_t> passes_;  ///< by operation
};

std::optional<std::vector<PassTimes>> by_events(const JobProgram& job,
                                                const hardware::GpuSpec& spec,
                                                std::uint32_t passes) {
  std::vector<Watch> watches;
  for (const program::Program& program : job.ranks) watches.emplace_back(program, passes);
  const LoneSetup once;
  const LoneSetup setup = passes == 1 ? once : LoneSetup{Repeat::kLoop, passes, {}};
  LoneJob lone(job, spec, setup, pointers_to(watches));
  lone.run();
  if (!lone.finished()) return std::nullopt;
  std::vector<PassTimes> times;
  for (Watch& watch : watches) times.push_back(std::move(watch.times));
  return times;
}

/// False if the recurrence leaves the job to events.
bool expect_the_same(const JobProgram& job, const hardware::GpuSpec& spec,
                     std::uint32_t passes = 1) {
  EXPECT_TRUE(has_recurrence(job, spec));
  const auto expected = by_events(job, spec, passes);
  const auto found = pass_times(job, passes);
  EXPECT_TRUE(expected);
  if (!found || !expected) return false;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    EXPECT_EQ((*found)[rank].op_ends, (*expected)[rank].op_ends);
    EXPECT_EQ((*found)[rank].marks, (*expected)[rank].marks);
    EXPECT_EQ((*found)[rank].last_op_end, (*expected)[rank].last_op_end);
    if (passes > 1) continue;  // runs that repeat tell no end
    EXPECT_EQ((*found)[rank].end, (*expected)[rank].end);
  }
  return true;
}

struct Shape {
  std::uint32_t ranks;
  std::uint32_t threads;
  std::uint16_t streams;
  std::uint32_t grain = 1;  ///< ns; times are whole ones: many things happen at once
};

/// Programs whose steps were drawn one after another, over all threads of a rank: what a step
/// refers to was drawn before it, so that nothing waits for ever. Every rank has the same
/// collectives.
class RandomJob {
 public:
  RandomJob(const Shape& shape, std::uint64_t seed) : shape_(shape), random_(seed, "random job") {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) job_.ranks.push_back(draw(rank));
    job_.collectives.resize(kCollectives);
    for (JoinedCollective& collective : job_.collectives) collective.participants = shape.ranks;
  }
  [[nodiscard]] const JobProgram& job() const { return job_; }

 private:
  static constexpr std::uint32_t kSteps = 400;
  static constexpr std::uint32_t kCollectives = 20;

  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_.uniform() * limit);
  }
  bool chance(double probability) { return random_.uniform() < probability; }
  std::uint32_t whole(std::uint32_t span) { return span / shape_.grain * shape_.grain; }
  std::uint32_t passes_back() { return chance(0.1) ? 1 + below(2) : 0; }
  program::ShortSpan span(std::uint32_t longest) {
    return {chance(0.2) ? 0 : whole(below(longest))};
  }

  // Its edges are from operations of its own thread, which are launched before it, or from itself,
  // passes ago.
  program::Op& add_op(program::Program& program, std::uint32_t thread) {
    std::vector<std::uint32_t>& before = ops_of_[thread];
    const auto own = static_cast<std::uint32_t>(program.ops.size());
    program::Op& op = program.ops.emplace_back();
    op.duration = Duration{chance(0.01) ? 0 : shape_.grain + whole(below(20'000))};
    op.launch_lag = span(6'000);
    op.gap = span(3'000);
    op.profile = 0;
    op.stream = static_cast<std::uint16_t>(below(shape_.streams));
    op.result_slot = program.result_slots++;
    if (chance(0.1)) op.kind = program::WorkKind::kMemset;
    if (op.stream == 0 && chance(0.1)) op.kind = program::WorkKind::kCopy;
    op.first_edge = static_cast<std::uint32_t>(program.edges.size());
    for (; op.edge_count < 2 && !before.empty() && chance(0.2); ++op.edge_count) {
      const std::uint32_t back = passes_back();
      const std::uint32_t from = before[below(static_cast<std::uint32_t>(before.size()))];
      program.edges.push_back({back > 0 ? own : from, span(2'000), back});
    }
    before.push_back(own);
    return op;
  }

  void launch(program::Program& program, std::uint32_t thread, program::Step& step) {
    step.kind = chance(0.1) ? program::StepKind::kLaunchAndWait : program::StepKind::kLaunch;
    step.target = static_cast<std::uint32_t>(program.ops.size());
    step.count = static_cast<std::uint16_t>(1 + (chance(0.2) ? below(4) : 0));
    for (std::uint32_t i = 0; i < step.count; ++i) add_op(program, thread);
  }

  // All by the first thread, on the last stream.
  void launch_collective(program::Program& program, program::Step& step, std::uint32_t collective) {
    step.kind = program::StepKind::kLaunch;
    step.target = static_cast<std::uint32_t>(program.ops.size());
    step.count = 1;
    program::Op& op = add_op(program, 0);
    op.kind = program::WorkKind::kCollective;
    op.stream = static_cast<std::uint16_t>(shape_.streams - 1);
    op.collective = collective;
  }

  void wait(program::Program& program, program::Step& step) {
    step.kind = program::StepKind::kPause;
    if (chance(0.3)) step.kind = program::StepKind::kWaitDevice;
    if (chance(0.3)) {
      step.kind = program::StepKind::kWaitStream;
      step.target = below(shape_.streams);
    } else if (chance(0.3) && !program.ops.empty()) {
      step.kind = program::StepKind::kWaitOp;
      step.target = below(static_cast<std::uint32_t>(program.ops.size()));
    }
  }

  // A wait's return lag, and now and then a hand-over from what another thread did last.
  void add_detail(program::Program& program, std::uint32_t thread, program::Step& step) {
    program::StepDetail detail;
    detail.return_lag = span(2'000);
    detail.passes_back = passes_back();
    const std::uint32_t other = below(shape_.threads);
    const std::size_t steps = program.threads[other].steps.size();
    if (other != thread && steps > 0 && chance(0.5)) {
      detail.after_thread = other;
      detail.after_step = static_cast<std::uint32_t>(steps) - 1;
      detail.after_passes_back = passes_back();
    }
    step.detail = static_cast<std::uint32_t>(program.details.size());
    program.details.push_back(detail);
  }

  program::Program draw(std::uint32_t rank) {
    program::Program program;
    program.rank = rank;
    program.stream_count = shape_.streams;
    program.start_offset = Duration{whole(below(50'000))};
    program.profiles.push_back(gpu::blocks_of_warps(1, 1));
    program.threads.resize(shape_.threads);
    ops_of_.assign(shape_.threads, {});
    std::uint32_t collectives = 0;
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      const bool meets = i % (kSteps / kCollectives) == 7;
      const std::uint32_t thread = meets ? 0 : below(shape_.threads);
      program::Step step;
      step.think = span(4'000);
      step.cost = span(5'000);
      if (meets) {
        launch_collective(program, step, collectives++);
      } else if (i % 50 == 0) {
        step.kind = program::StepKind::kIteration;
      } else if (chance(0.7)) {
        launch(program, thread, step);
      } else {
        wait(program, step);
      }
      if (chance(0.3)) add_detail(program, thread, step);
      program.threads[thread].steps.push_back(step);
    }
    return program;
  }

  Shape shape_;
  RandomStream random_;
  JobProgram job_;
  std::vector<std::vector<std::uint32_t>> ops_of_;  ///< of the rank that is drawn, by thread
};

// Of two ranks, whose collectives are sends of one to the other, in turn.
TEST(Recurrence, KnowsSendsThatDoNotWait) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobProgram job = RandomJob({2, 2, 3}, seed).job();
    for (std::uint32_t i = 0; i < job.collectives.size(); ++i) {
      JoinedCollective& joined = job.collectives[i];
      joined.point_to_point = joined.buffered = true;
      joined.from = i % 2;
      joined.to = 1 - joined.from;
    }
    static_cast<void>(expect_the_same(job, plain_gpu()));
    ASSERT_FALSE(HasFailure());
  }
}

class RandomJobs : public testing::TestWithParam<Shape> {};

/// How many of `seeds` jobs the recurrence leaves to events.
int left_to_events(const Shape& shape, std::uint64_t seeds, std::uint32_t passes) {
  int left = 0;
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (!expect_the_same(RandomJob(shape, seed).job(), plain_gpu(), passes)) ++left;
  }
  return left;
}

TEST_P(RandomJobs, EndAsTheyDoEventByEvent) {
  EXPECT_LT(left_to_events(GetParam(), 200, 1), GetParam().grain > 1 ? 200 : 60);
}

TEST_P(RandomJobs, RepeatAsTheyDoEventByEvent) {
  EXPECT_LT(left_to_events(GetParam(), 100, 4), 100);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomJobs,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 1, 4}, Shape{1, 3, 2},
                                         Shape{3, 1, 2}, Shape{4, 2, 3}, Shape{8, 3, 4},
                                         Shape{1, 1, 4, 1000}, Shape{1, 2, 3, 1000},
                                         Shape{3, 2, 2, 500}));

// Calls at 0, 1, 2: two kernels of 5 on one stream, and a collective that the other rank reaches
// at 20 and that lasts 4. The last call waits for the device, and returns 2 after it.
TEST(RecurrenceByHand, OfTwoRanksThatMeet) {
  ProgramMaker early(2);
  early.kernel(0, 5).kernel(1, 5).collective(1, 4, 0, 1).wait_device(1, 2).end();
  ProgramMaker late(2);
  late.kernel(0, 5).collective(20, 4, 0, 1).end();
  JobProgram job;
  job.ranks = {early.program(), late.program()};
  job.collectives = {{.participants = 2}};
  const auto times = pass_times(job);
  ASSERT_TRUE(times);
  const auto at = [](std::int64_t span) { return kSimStart + us(span); };
  EXPECT_EQ((*times)[0].op_ends, (std::vector{at(5), at(10), at(24)}));
  EXPECT_EQ((*times)[0].end, at(26));
  EXPECT_EQ((*times)[1].op_ends, (std::vector{at(5), at(24)}));
  EXPECT_EQ((*times)[1].end, at(24));
}

// 3,000 launches, far ahead of the device: each from the 1,025th on waits for room.
TEST(Recurrence, KnowsThatTheLaunchQueueIsShort) {
  ProgramMaker maker;
  maker.iteration(0);
  for (int i = 0; i < 3'000; ++i) maker.kernel(1, 7).cost(1);
  maker.end();
  JobProgram job;
  job.ranks = {maker.program()};
  EXPECT_TRUE(expect_the_same(job, plain_gpu()));
  EXPECT_TRUE(expect_the_same(job, plain_gpu(), 3));
  // The last call comes when the 1,976th kernel has ended.
  const auto times = pass_times(job);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->front().marks.back(), times->front().op_ends[1'975] + us(1));
}

JobProgram alone(const program::Program& program) {
  JobProgram job;
  job.ranks = {program};
  return job;
}

// The kernel takes no time, and is there in the instant of the call that asks for it.
TEST(Recurrence, LeavesToEventsWhatOnlyTheyTell) {
  const JobProgram job = alone(ProgramMaker().kernel(0, 0).wait_device(0, 2).end().program());
  EXPECT_FALSE(pass_times(job));
  EXPECT_TRUE(replay_alone(job, plain_gpu()));
}

TEST(Recurrence, IsOnlyOfJobsInWhichNothingCompetes) {
  JobProgram job = alone(ProgramMaker(2).kernel(0, 5).program());
  EXPECT_TRUE(has_recurrence(job, plain_gpu()));
  job.ranks.front().own_kernels = program::OwnKernels::kCompete;
  EXPECT_FALSE(has_recurrence(job, plain_gpu()));
}

TEST(Recurrence, SaysNothingOfAJobThatIsNeverDone) {
  JobProgram job = alone(ProgramMaker().collective(0, 5, 0).end().program());
  job.collectives = {{.participants = 2}};
  EXPECT_FALSE(pass_times(job));
}

}  // namespace
}  // namespace bubblesim::workload

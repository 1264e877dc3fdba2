// An inference service: queue, batches, passes. Times in us.
#include <gtest/gtest.h>

#include <optional>

#include "sim/workload/estimated_shape.hpp"
#include "sim/workload/meeting_table.hpp"
#include "sim/workload/program_builder.hpp"
#include "sim/workload/service.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"
#include "tests/unit/sim/workload/trace_builder.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::workload {
namespace {

struct Served {
  std::uint64_t number = 0;
  std::int64_t arrival = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const Served&, const Served&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Served& served) {
    return out << "{" << served.number << ": " << served.arrival << " " << served.start << " "
               << served.end << "}";
  }
};

using Batches = std::vector<std::pair<std::uint64_t, std::int64_t>>;

/// A service before one kernel of 10, whose launch needs no time.
class OneService : public ServiceListener, public RunObserver {
  engine::Engine engine_;
  gpu::Gpu gpu_{engine_, plain_gpu(), gpu::SharingSetup{}};
  gpu::Script script_{engine_};
  program::Program program_ = ProgramMaker().kernel(0, 10).wait_stream(0, 0).end().program();
  std::optional<ProgramRun> run_;

 public:
  explicit OneService(const program::Batching& setup,
                      const std::vector<std::int64_t>& arrivals = {}) {
    RunSetup run;
    run.repeat = Repeat::kOnePass;
    run.observer = this;
    run_.emplace(engine_, gpu_, program_, run);
    service.emplace(engine_, *run_, setup, *this);
    for (std::uint64_t number = 0; number < arrivals.size(); ++number) {
      script_.at(arrivals[number] * 1000, [this, at = arrivals[number], number] {
        service->arrive(number, kSimStart + us(at));
      });
    }
  }
  void run(std::int64_t until = 1'000'000) { engine_.run_until(kSimStart + us(until)); }

  void on_pass_finished(ProgramRun&, SimTime now) override { service->pass_finished(now); }
  void on_served(const ServedRequest& request) override {
    served.push_back({request.number, microseconds(request.arrival), microseconds(request.start),
                      microseconds(request.end)});
  }
  void on_batch(std::uint64_t requests, SimTime now) override {
    batches.emplace_back(requests, microseconds(now));
  }

  std::optional<Service> service;
  std::vector<Served> served;
  Batches batches;
};

TEST(OneService, StartsBatchesAsItsSetupSays) {
  struct Row {
    const char* name;
    program::Batching setup;
    std::vector<std::int64_t> arrivals;
    std::vector<Served> served;  ///< empty: not compared
    Batches batches{};           ///< likewise
  };
  for (const Row& row : {
           // 5 to 15; the second waits until 15, then 25; the third finds it idle.
           Row{"one after another in order of arrival", {}, {5, 7, 30},
               {{0, 5, 5, 15}, {1, 7, 15, 25}, {2, 30, 30, 40}}, {{1, 15}, {1, 25}, {1, 40}}},
           // Batches of 2: the first two fill one at 7, the last waits from 30 until 30 + 100.
           {"when a batch is full or its oldest has waited long enough",
            {.requests_per_pass = 2, .max_batch = 2, .max_wait = us(100)}, {5, 7, 30},
            {{0, 5, 7, 17}, {1, 7, 7, 17}, {2, 30, 130, 140}}},
           // Without waiting, the first goes alone at 5; the three that came until 15 are 2 and 1.
           {"what waits, up to the batch's size", {.requests_per_pass = 2, .max_batch = 2},
            {5, 7, 8, 9}, {}, {{1, 15}, {2, 25}, {1, 35}}},
           // The oldest came at 7 and may wait 20, until 27; the service is free at 16: the batch
           // of one starts at 27, not 16 + 20.
           {"waiting counts from the arrival",
            {.requests_per_pass = 2, .max_batch = 2, .max_wait = us(20)}, {5, 6, 7},
            {{0, 5, 6, 16}, {1, 6, 6, 16}, {2, 7, 27, 37}}},
           // The request of 7 has waited its 3 when the service is free at 16: it starts at once.
           {"a ripe request when the service is free",
            {.requests_per_pass = 2, .max_batch = 2, .max_wait = us(3)}, {5, 6, 7},
            {{0, 5, 6, 16}, {1, 6, 6, 16}, {2, 7, 16, 26}}},
           // A pass serves 4. Batches of 4, 8 and 1 take 1, 1 + 0.5 and 1 times 10.
           {"a batch beyond the pass costs its share",
            {.requests_per_pass = 4, .max_batch = 8, .max_wait = us(1), .batch_cost = 0.5},
            {0, 0, 0, 0, 50, 50, 50, 50, 50, 50, 50, 50, 100}, {}, {{4, 11}, {8, 65}, {1, 111}}},
           // Five requests need two passes' worth: ceil(5 / 4) = 2.
           {"a partly filled pass costs a whole one",
            {.requests_per_pass = 4, .max_batch = 8, .max_wait = us(1), .batch_cost = 1},
            {0, 0, 0, 0, 0}, {}, {{5, 21}}},
           // One that arrives as the service becomes free joins the next batch.
           {"a request of the instant of a completion is next", {}, {0, 10},
            {{0, 0, 0, 10}, {1, 10, 10, 20}}}}) {
    SCOPED_TRACE(row.name);
    OneService one(row.setup, row.arrivals);
    one.run();
    EXPECT_TRUE(row.served.empty() || one.served == row.served)
        << testing::PrintToString(one.served);
    EXPECT_TRUE(row.batches.empty() || one.batches == row.batches)
        << testing::PrintToString(one.batches);
  }
}

TEST(OneService, OfflineThereIsAlwaysANextBatch) {
  OneService one({.requests_per_pass = 4, .max_batch = 4});
  one.service->start_offline(kSimStart);
  one.run(35);
  EXPECT_EQ(one.batches, (Batches{{4, 10}, {4, 20}, {4, 30}}));
  EXPECT_TRUE(one.service->unfinished().empty());
}

// At 12, the request of 5 runs, those of 7 and 9 wait.
TEST(OneService, WhatIsNotServedIsReportedOldestFirst) {
  OneService one({}, {5, 7, 9});
  one.run(12);
  EXPECT_EQ(one.service->unfinished(),
            (std::vector<serving::UnfinishedRequest>{
                {kSimStart + us(5)}, {kSimStart + us(7)}, {kSimStart + us(9)}}));
  one.run();
  EXPECT_TRUE(one.service->unfinished().empty());
}

// How long a run surely arrives at no collective. Times in us; bounds keep a thousandth back.
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

// Collectives whose time is the network's: the fabric carries them from the last rank's start on.
// Times in us. The link moves 1000 bytes a us.

/// Ranks 0 and 1 meet at 60 as recorded; the network takes `latency` and then `bytes`.
JobProgram modelled(std::int64_t latency, double bytes) {
  JobProgram job = must_build_job({rank_with(0, from_to(10, 100)), rank_with(1, from_to(60, 100))});
  job.links = {{1e9}};
  job.transfers.resize(1);
  job.transfers[0].latency = us(latency);
  job.transfers[0].loads = {{network::LinkId{0}, bytes}};
  job.collectives.at(0).transfer = 0;
  for (program::Program& program : job.ranks) program.ops.at(0).duration = Duration{0};
  return job;
}

// 60 + 5 + 20.
TEST(ModelledCollectives, EndWhenTheFabricHasCarriedThem) {
  const auto runs = run_once(modelled(5, 20000));
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 85}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 85}}));
}

TEST(ModelledCollectives, ARanksOwnSpanComesAfter) {
  JobProgram job = modelled(5, 20000);
  job.ranks[1].ops[0].duration = us(3);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 85}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 88}}));
}

// Rank 0 stands for all of its replicas: it waits for nobody, and holds its SMs for 25.
TEST(ModelledCollectives, AFoldedGroupHasOneParticipant) {
  JobProgram job = modelled(5, 20000);
  job.ranks.pop_back();
  job.collectives[0].participants = 1;
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 35}}));
}

// Two jobs' worth of ranks on one link: alone 20 each, together 40.
TEST(ModelledCollectives, ShareTheirLinks) {
  JobProgram job = modelled(0, 20000);
  job.collectives.push_back(job.collectives[0]);
  for (JoinedCollective& joined : job.collectives) joined.participants = 1;
  job.ranks[0].ops[0].launch_lag = job.ranks[1].ops[0].launch_lag;
  job.ranks[0].threads = job.ranks[1].threads;
  job.ranks[1].ops[0].collective = 1;
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{60, 100}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 100}}));
}

// Twice the link: (5 + 20) / 2 = 12.5, so with 6 and 20: 13.
TEST(ModelledCollectives, ACounterfactualsLinkSpeedIsTheNetworks) {
  JobProgram job = modelled(6, 20000);
  apply({.target = WhatIfTarget::kLink, .name = {}, .rank = {}, .speed = 2.0}, job);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 73}}));
}

// What a kernel without a recorded launch shape is taken to occupy, and how that is said.

// 100 SMs of 2048 threads, 32 blocks and 65,536 registers: 16 blocks of 128 threads with 32
// registers, 2 of 256 with 128.
hardware::GpuSpec device() {
  hardware::GpuSpec spec;
  spec.sm_count = 100;
  spec.sm.max_threads = 2048;
  spec.sm.max_warps = 64;
  spec.sm.max_blocks = 32;
  spec.sm.registers = 65536;
  spec.sm.warp_size = 32;
  spec.sm.register_unit = 256;
  spec.sm.warp_allocation_unit = 4;
  spec.sm.shared_memory_bytes = 102400;
  spec.sm.shared_memory_unit_bytes = 1024;
  spec.sm.shared_memory_reserved_bytes = 1024;
  return spec;
}

std::uint64_t blocks_of(std::int64_t us, program::KernelClass kernel_class) {
  return estimate_kernel_shape(std::chrono::microseconds(us), kernel_class, device()).blocks();
}

TEST(EstimatedShape, a_short_kernel_fills_the_gpu_in_proportion_to_its_duration) {
  EXPECT_EQ(blocks_of(5, program::KernelClass::kMemory), 400U);    // 5/20 of 100 x 16
  EXPECT_EQ(blocks_of(10, program::KernelClass::kCompute), 100U);  // 10/20 of 100 x 2
  EXPECT_EQ(blocks_of(0, program::KernelClass::kUnknown), 1U);
}

TEST(EstimatedShape, a_long_kernel_fills_it_wave_by_wave) {
  EXPECT_EQ(blocks_of(60, program::KernelClass::kMemory), 16'000U);   // 10 waves of 6 us
  EXPECT_EQ(blocks_of(500, program::KernelClass::kCompute), 1'000U);  // root of 500/20: 5 waves
}

/// A recording of kernels, the first `known` of them with a shape of 7 blocks.
traces::RankTrace recording(std::size_t known, const std::vector<Launched>& kernels) {
  TraceBuilder builder;
  for (const Launched& kernel : kernels) builder.kernel(kernel);
  traces::RankTrace trace = builder.trace();
  const ShapeId seven = trace.shapes.intern({{7, 1, 1}, {128, 1, 1}, 32, 0});
  const ShapeId none = trace.shapes.intern(traces::kUnknownShape);
  for (std::size_t i = 0; i < trace.device_ops.size(); ++i) {
    trace.device_ops[i].shape = i < known ? seven : none;
  }
  return trace;
}

program::Program built(const traces::RankTrace& trace) {
  return build_program(trace, device(), {Window::kWhole}).value();
}

TEST(EstimatedShape, another_launch_of_the_name_says_more_than_the_duration) {
  const program::Program program = built(recording(
      1, {{.called = 0, .returned = 1, .start = 2, .end = 12, .name = "relu"},
          {.called = 3, .returned = 4, .start = 12, .end = 22, .name = "relu"},
          {.called = 5, .returned = 6, .start = 22, .end = 32, .name = "gelu"}}));
  EXPECT_EQ(program.profiles[program.ops[1].profile].blocks, 7U);
  EXPECT_EQ(program.profiles[program.ops[2].profile].blocks, 800U);  // 10/20 of 100 x 16
}

TEST(EstimatedShape, the_share_of_kernel_time_is_in_the_counters) {
  const program::Program program = built(recording(
      1, {{.called = 0, .returned = 1, .start = 2, .end = 32, .name = "relu"},
          {.called = 3, .returned = 4, .start = 32, .end = 42, .name = "gelu"}}));
  EXPECT_EQ(program.counters.count("program_launch_shapes_estimated"), 1U);
  EXPECT_EQ(program.counters.count("program_kernel_ns"), 40'000U);
  EXPECT_EQ(program.counters.count("program_kernel_ns_of_estimated_shape"), 10'000U);
  EXPECT_EQ(program.counters.count("program_launch_shapes_mostly_estimated"), 1U);
}

TEST(EstimatedShape, recorded_shapes_say_nothing) {
  const program::Program program = built(recording(1, {{.returned = 1, .start = 2, .end = 32}}));
  EXPECT_EQ(program.counters.count("program_kernel_ns"), 0U);
  EXPECT_EQ(program.counters.count("program_launch_shapes_estimated"), 0U);
}

TEST(EstimatedShape, a_collective_takes_a_few_sms_however_long_it_waits) {
  EXPECT_EQ(estimate_collective_shape().blocks(), 8U);
}

}  // namespace
}  // namespace bubblesim::workload

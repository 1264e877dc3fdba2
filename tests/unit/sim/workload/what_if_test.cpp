// Counterfactuals: what their texts mean, and what they change. Times in us.
#include <gmock/gmock.h>

#include <string>

#include "sim/workload/machine.hpp"
#include "sim/workload/sensitivity.hpp"
#include "sim/workload/what_if.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

using testing::HasSubstr, testing::StartsWith;

struct Text {
  std::string text;
  WhatIfTarget target;
  std::string name;
  std::optional<std::uint32_t> rank;
  double speed;
};

TEST(WhatIfText, EveryTargetIsRead) {
  const std::vector<Text> texts{
      {"kernels=2", WhatIfTarget::kAllKernels, "", {}, 2},
      {"compute=1.5", WhatIfTarget::kComputeKernels, "", {}, 1.5},
      {"memory=0.25", WhatIfTarget::kMemoryKernels, "", {}, 0.25},
      {"kernel:gemm=4", WhatIfTarget::kNamedKernels, "gemm", {}, 4},
      {"kernel:f<a=b>=4", WhatIfTarget::kNamedKernels, "f<a=b>", {}, 4},
      {"copies=2", WhatIfTarget::kCopies, "", {}, 2},
      {"link@0=0.5", WhatIfTarget::kLink, "", 0U, 0.5},
      {"host@3=8e-1", WhatIfTarget::kHost, "", 3U, 0.8},
  };
  for (const Text& expected : texts) {
    const auto change = must(parse_what_if(expected.text));
    EXPECT_EQ(change.target, expected.target) << expected.text;
    EXPECT_EQ(change.name, expected.name);
    EXPECT_EQ(change.rank, expected.rank);
    EXPECT_EQ(change.speed, expected.speed);
  }
}

TEST(WhatIfText, SeveralChangesHaveCommasBetweenThem) {
  const auto changes = must(parse_what_ifs("kernels=2,kernel:f<a,b>=4,host@1=0.5"));
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes.at(0).target, WhatIfTarget::kAllKernels);
  EXPECT_EQ(changes.at(1).name, "f<a,b>");
  EXPECT_EQ(changes.at(2).rank, 1U);
  for (const char* text : {"kernels=2,", "kernels=2,,host=2", "kernels=2,gpu=2", ","}) {
    EXPECT_FALSE(parse_what_ifs(text)) << text;
  }
}

TEST(WhatIfText, FaultsSayWhatWasFoundAndWhatIsAllowed) {
  const auto message = [](const std::string& text) {
    const auto change = parse_what_if(text);
    return change ? "accepted " + text : change.error().text();
  };
  for (const std::string text : {"", "host", "compute:2", "=", "host=2="}) {
    EXPECT_THAT(message(text), StartsWith("--what-if: found \"" + text + "\": ")) << text;
    EXPECT_THAT(message(text), HasSubstr("expected TARGET[@RANK]=SPEED"));
  }
  EXPECT_THAT(message("host"), HasSubstr("no '='"));
  for (const std::string speed : {"", "0", "-1", "nan", "inf", "fast", "2x", " 2", "1e9", "1e-300",
                                  "0x2", "1e999"}) {
    EXPECT_THAT(message("host=" + speed), HasSubstr("the speed is not a number")) << speed;
  }
  for (const std::string target : {"", "gpu", "Host", "kernel:", "kernel", "host "}) {
    EXPECT_THAT(message(target + "=2"), HasSubstr("unknown target")) << target;
  }
  for (const std::string rank : {"", "-1", "x", "1.5", "4294967296", " 1"}) {
    EXPECT_THAT(message("host@" + rank + "=2"), HasSubstr("rank after '@'")) << rank;
  }
}

/// Two ranks of a compute kernel (40), a memory kernel (40), a copy (40), a collective (40).
JobProgram two_ranks() {
  JobProgram job;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ProgramMaker maker;
    maker.rank(rank).kernel(10, 40).kernel(10, 40).copy_and_wait(10, 40, 0);
    maker.collective(10, 40, program::kNoIndex).end();
    program::Program program = maker.program();
    program.profiles.assign(2, program.profiles.front());
    program.profiles[0].kernel_class = program::KernelClass::kCompute;
    program.profiles[1].kernel_class = program::KernelClass::kMemory;
    program.ops[1].profile = 1;
    program.ops[0].name = program.names.intern("gemm_128");
    program.ops[1].name = program.names.intern("elementwise");
    for (std::size_t i : {2U, 3U}) program.ops[i].name = program.names.intern("other");
    job.ranks.push_back(std::move(program));
  }
  return job;
}

std::vector<std::int64_t> durations(const program::Program& program) {
  std::vector<std::int64_t> result;
  for (const program::Op& op : program.ops) result.push_back(microseconds(op.duration));
  return result;
}

using Lengths = std::vector<std::int64_t>;

Lengths after(const std::string& text, std::size_t rank) {
  JobProgram job = two_ranks();
  apply(*parse_what_if(text), job);
  return durations(job.ranks[rank]);
}

TEST(WhatIf, OnlyWhatIsNamedChanges) {
  EXPECT_EQ(after("kernels=2", 1), (Lengths{20, 20, 40, 40}));
  EXPECT_EQ(after("compute=0.5", 1), (Lengths{80, 40, 40, 40}));
  EXPECT_EQ(after("memory=4", 1), (Lengths{40, 10, 40, 40}));
  EXPECT_EQ(after("kernel:gemm=2", 1), (Lengths{20, 40, 40, 40}));
  EXPECT_EQ(after("copies=2", 1), (Lengths{40, 40, 20, 40}));
  EXPECT_EQ(after("link=0.1", 1), (Lengths{40, 40, 40, 400}));
  EXPECT_EQ(after("host=2", 1), (Lengths{40, 40, 40, 40}));
}

TEST(WhatIf, OnlyTheRankThatIsNamedChanges) {
  EXPECT_EQ(after("kernels@1=2", 0), (Lengths{40, 40, 40, 40}));
  EXPECT_EQ(after("kernels@1=2", 1), (Lengths{20, 20, 40, 40}));
}

TEST(WhatIf, TheHostsThinkTimeAndCallsChange) {
  JobProgram job = two_ranks();
  job.ranks[0].threads[0].steps[0].cost = short_us(6);
  apply(*parse_what_if("host@0=2"), job);
  EXPECT_EQ(microseconds(job.ranks[0].threads[0].steps[0].think), 5);
  EXPECT_EQ(microseconds(job.ranks[0].threads[0].steps[0].cost), 3);
  EXPECT_EQ(microseconds(job.ranks[1].threads[0].steps[0].think), 10);
}

TEST(WhatIf, a_rank_that_the_job_does_not_have_is_an_error_that_names_its_ranks) {
  const JobProgram job = two_ranks();
  EXPECT_TRUE(check_concerns(*parse_what_if("host@1=2"), "host@1=2", job));
  EXPECT_TRUE(check_concerns(*parse_what_if("host=2"), "host=2", job));
  EXPECT_EQ(error_of(check_concerns(*parse_what_if("host@99=2"), "host@99=2", job)).text(),
            "--what-if: found \"host@99=2\": the job has no rank 99; expected one of 0, 1");
}

TEST(WhatIf, AKernelThatTheJobDoesNotHaveIsAnError) {
  const auto refused =
      error_of(check_concerns(*parse_what_if("kernel:nosuch=2"), "kernel:nosuch=2", two_ranks()));
  EXPECT_THAT(refused.text(), HasSubstr("no kernel's name contains \"nosuch\""));
}

// 10 us at a millionth of the speed are 10 s, and a step holds 4.29 s.
TEST(WhatIf, ASpanThatNoStepCanHoldIsCountedAsClamped) {
  JobProgram job = two_ranks();
  apply(*parse_what_if("host@0=1e-6"), job);
  EXPECT_EQ(job.ranks[0].counters.count("program_spans_clamped"), 4U);
  EXPECT_EQ(job.ranks[1].counters.count("program_spans_clamped"), 0U);
  EXPECT_EQ(job.counters.count("program_spans_clamped"), 4U);
}

// Collectives of ranks whose contexts take turns with others'. Times in us: slices of 2,000 and
// switches of 200, so that a context beside one other has the GPU for 2,000 of 4,400.
constexpr gpu::SharingSetup kTurns{.mode = program::SharingMode::kTimeSliced,
                                   .slice = std::chrono::microseconds{2'000},
                                   .switch_cost = std::chrono::microseconds{200}};

program::Program exchange(std::uint32_t rank, std::int64_t span, std::uint32_t joined = 0) {
  ProgramMaker maker;
  maker.rank(rank).collective(0, span, joined);
  return maker.program();
}

program::Program filler() { return ProgramMaker().kernel(0, 100'000).program(); }

class SwitchedOut : public testing::Test {
 protected:
  void meet(JoinedCollective collective) {
    job_.collectives.push_back(std::move(collective));
    machine_.emplace(spec_, &job_);
  }
  RunRecorder& add(MachineGpu& gpu, const program::Program& program, std::int64_t from = 0) {
    RunRecorder& recorder = *recorders_.emplace_back(std::make_unique<RunRecorder>());
    const auto& kept = *programs_.emplace_back(std::make_unique<program::Program>(program));
    RunSetup setup;
    setup.repeat = Repeat::kOnePass;
    setup.rendezvous = machine_->network();
    setup.observer = &recorder;
    ProgramRun& run = machine_->add_program(gpu, kept, setup);
    starts_.emplace_back(&run, from);
    return recorder;
  }
  void run() {
    for (const auto& [run, from] : starts_) run->start_pass(at(from));
    machine_->conductor().run_until();
  }
  struct Rank {
    std::int64_t span;
    Span expected;
    std::int64_t from = 0;
  };
  /// Rank 0 takes turns with a filler on its GPU, which comes after it; rank 1 has its own.
  void expect_beside_a_filler(const Rank& rank0, const Rank& rank1) {
    MachineGpu& shared = machine_->add_gpu(kTurns);
    const RunRecorder& first_rank = add(shared, exchange(0, rank0.span));
    add(shared, filler());
    const RunRecorder& other = add(machine_->add_gpu(), exchange(1, rank1.span), rank1.from);
    run();
    EXPECT_EQ(first(first_rank), rank0.expected);
    EXPECT_EQ(first(other), rank1.expected);
  }
  static Span first(const RunRecorder& recorder) { return recorder.passes.at(0).at(0); }

  const hardware::GpuSpec spec_ = plain_gpu();
  JobProgram job_;
  std::optional<Machine> machine_;
  std::vector<std::unique_ptr<program::Program>> programs_;
  std::vector<std::unique_ptr<RunRecorder>> recorders_;
  std::vector<std::pair<ProgramRun*, std::int64_t>> starts_;
};

// Rank 0 has the GPU first, in ten slices: 9 x 4,400 + 2,000.
TEST_F(SwitchedOut, RanksAdvanceOnlyWhileAllHaveTheirGpus) {
  meet({2});
  expect_beside_a_filler({20'000, {0, 41'600}}, {20'000, {0, 41'600}});
}

// Rank 0 has its GPU in [0, 2,000), rank 1 in [1,000, 3,000), and so on every 4,400: together for
// 1,000 of them, the third time from 9,800 on.
TEST_F(SwitchedOut, TwoThatTakeTurnsAdvanceWhereTheirTurnsOverlap) {
  meet({2});
  MachineGpu& first_gpu = machine_->add_gpu(kTurns);
  MachineGpu& second_gpu = machine_->add_gpu(kTurns);
  const RunRecorder& rank0 = add(first_gpu, exchange(0, 3'000));
  add(first_gpu, filler());
  const RunRecorder& rank1 = add(second_gpu, exchange(1, 3'000), 1'000);
  add(second_gpu, filler(), 1'000);
  run();
  EXPECT_EQ(first(rank0), (Span{0, 10'800}));
  EXPECT_EQ(first(rank1), (Span{1'000, 10'800}));
}

// Rank 0 has its GPU in [0, 2,000), rank 1 in [2,200, 4,200), and so on every 4,400: never
// together. Each time rank 1 gets its turn both have had one, and what lies in buffers passes, 200:
// at 6,600 and 11,000; then at 15,400, the last 100. Rank 0 ends as it has its GPU again.
TEST_F(SwitchedOut, TwoWhoseTurnsNeverOverlapAdvanceByWhatBuffersHold) {
  meet({2});
  MachineGpu& first_gpu = machine_->add_gpu(kTurns);
  MachineGpu& second_gpu = machine_->add_gpu(kTurns);
  const RunRecorder& rank0 = add(first_gpu, exchange(0, 500));
  add(first_gpu, filler());
  add(second_gpu, filler());
  const RunRecorder& rank1 = add(second_gpu, exchange(1, 500));
  run();
  EXPECT_EQ(first(rank0), (Span{0, 17'600}));
  EXPECT_EQ(first(rank1), (Span{2'200, 15'500}));
}

// Rank 1 comes at 3,000; rank 0 has its GPU again from 4,400 on.
TEST_F(SwitchedOut, TheyBeginWhenWhoStandsStillAsTheLastOneComesGoesOn) {
  meet({2});
  expect_beside_a_filler({1'000, {0, 5'400}}, {1'000, {3'000, 5'400}, 3'000});
}

// Rank 1 is done after 1,000; rank 0 has the last 1,000 of its 3,000 from 4,400 on.
TEST_F(SwitchedOut, WhoHasEndedHoldsUpNobodyAndIsNotHeld) {
  meet({2});
  expect_beside_a_filler({3'000, {0, 5'400}}, {1'000, {0, 1'000}});
}

TEST_F(SwitchedOut, OneWithoutCounterpartAdvancesInItsOwnTurns) {
  meet({2});
  MachineGpu& shared = machine_->add_gpu(kTurns);
  const RunRecorder& rank0 = add(shared, exchange(0, 20'000, program::kNoIndex));
  add(shared, filler());
  run();
  EXPECT_EQ(first(rank0), (Span{0, 41'600}));
}

// A link carries 1 byte a us. Of a latency of 500 and 2,500 bytes, 1,500 us pass in the first
// slice, and 1,000 in the next; then each rank's own 300.
TEST_F(SwitchedOut, TheFabricMovesNothingOfTheirsMeanwhile) {
  job_.links = {BytesPerSecond{1e6}};
  job_.transfers = {{.latency = us(500), .loads = {{network::LinkId{0}, 2'500}}}};
  meet({.participants = 2, .transfer = 0});
  expect_beside_a_filler({300, {0, 5'700}}, {300, {0, 5'700}});
}

// The send does not wait for its receive, which comes at 1,000; then both go on together: the send
// has 1,000 of its 3,000 left at 2,000, the receive 2,000.
TEST_F(SwitchedOut, ABufferedSendThatStandsStillHoldsUpItsReceive) {
  meet({.participants = 2, .point_to_point = true, .from = 0, .to = 1, .buffered = true});
  expect_beside_a_filler({3'000, {0, 5'400}}, {3'000, {1'000, 6'400}, 1'000});
}

// A rank of its own client is driven off by a switch of contexts in [1,000, 4,000).
TEST_F(SwitchedOut, APolicyThatSwitchesARankOutHoldsUpItsPeer) {
  meet({2});
  MachineGpu& shared = machine_->add_gpu(kTurns);
  const RunRecorder& rank0 = add(shared, exchange(0, 3'000));
  const RunRecorder& rank1 = add(machine_->add_gpu(), exchange(1, 3'000));
  gpu::Script script(machine_->engine());
  const ClientId client = starts_.front().first->client();
  script.at(1'000'000, [&] { shared.gpu.preempt(client, program::Preemption::kContextSwitch); });
  script.at(4'000'000, [&] { shared.gpu.proceed(client); });
  run();
  EXPECT_EQ(first(rank0), (Span{0, 6'000}));
  EXPECT_EQ(first(rank1), (Span{0, 6'000}));
}

// Clients after the first have what it leaves, which is nothing while its kernel covers all SMs: in
// [1,000, 2,500).
TEST_F(SwitchedOut, WhoHasOnlyWhatIsLeftHoldsUpItsPeerWhileNothingIs) {
  meet({2});
  MachineGpu& shared = machine_->add_gpu({.mode = program::SharingMode::kIdleOnly});
  add(shared, std::move(ProgramMaker().kernel(1'000, 1'500)).program());
  const RunRecorder& rank0 = add(shared, exchange(0, 3'000));
  const RunRecorder& rank1 = add(machine_->add_gpu(), exchange(1, 3'000));
  run();
  EXPECT_EQ(first(rank0), (Span{0, 4'500}));
  EXPECT_EQ(first(rank1), (Span{0, 4'500}));
}

// What a job's iteration time depends on. Times in us.
traces::Sensitivities of(const TraceBuilder& job) {
  const JobProgram program = must_build_job({job}, Window::kIterations);
  return must(find_sensitivities(program, plain_gpu()));
}

// Each of ten kernels of 100 starts 2 after its call, its wait returns 1 after its end, and the
// host thinks for 17: 1,200 in all. Twice as fast, kernels save 10 x 50, hosts 10 x 8.5; lags stay.
TraceBuilder launch_and_wait() {
  TraceBuilder job;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t at = 120 * i;
    job.kernel({at, at + 1, at + 2, at + 102})
        .call(traces::HostCallKind::kDeviceSync, {at + 1, at + 103});
  }
  return job.iteration(0, 1200);
}

TEST(Sensitivity, is_twice_the_share_that_a_thing_twice_as_fast_saves) {
  const traces::Sensitivities found = of(launch_and_wait());
  EXPECT_EQ(microseconds(found.iteration), 1200);
  EXPECT_NEAR(found.kernels, 2 * 500.0 / 1200, 1e-9);
  EXPECT_NEAR(found.host, 2 * 85.0 / 1200, 1e-9);
  EXPECT_EQ(found.link, 0);
  EXPECT_EQ(found.copies, 0);
  EXPECT_NEAR(found.fixed, 30.0 / 1200, 1e-9);
}

// Twice as fast, what takes 40 and returns 60 later takes 20, and returns 60 later.
TEST(Sensitivity, what_a_wait_takes_to_return_is_fixed) {
  TraceBuilder job;
  for (std::int64_t at = 0; at < 1000; at += 100) {
    job.kernel({at, at + 1, at + 1, at + 40})
        .call(traces::HostCallKind::kDeviceSync, {at + 1, at + 100});
  }
  const traces::Sensitivities found = of(job.iteration(0, 1000));
  EXPECT_NEAR(found.fixed, 0.6, 0.02);
  EXPECT_EQ(bottleneck(found), traces::Bottleneck::kNothing);
}

TEST(Sensitivity, adds_up_to_at_most_one) {
  const traces::Sensitivities found = of(launch_and_wait());
  EXPECT_GE(found.rest(), 0);
  EXPECT_LE(found.kernels + found.copies + found.link + found.host, 1);
}

// Three ranks compute for 100, the third of four for 400; then all meet until 510. It comes 300
// after the median rank, of iterations of 600.
TEST(Sensitivity, the_rank_that_comes_last_to_collectives_is_the_straggler) {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::int64_t own = rank == 2 ? 400 : 100;
    TraceBuilder job(rank);
    for (std::int64_t at = 0; at < 2400; at += 600) {
      job.iteration(at, at + 600).kernel({at, at + 1, at + 5, at + 5 + own})
          .collective({at + 2, at + 3, at + 6 + own, at + 510}, {})
          .call(traces::HostCallKind::kDeviceSync, {at + 4, at + 512});
    }
    ranks.push_back(job);
  }
  const auto found = find_sensitivities(must_build_job(ranks, Window::kIterations), plain_gpu());
  ASSERT_TRUE(found && found->straggler);
  EXPECT_EQ(found->straggler->rank, 2U);
  EXPECT_EQ(microseconds(found->straggler->late), 300);
}

}  // namespace
}  // namespace bubblesim::workload

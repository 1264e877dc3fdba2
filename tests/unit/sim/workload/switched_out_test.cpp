// Collectives of ranks whose contexts take turns with others'. Times in us: slices of 2,000 and
// switches of 200, so that a context beside one other has the GPU for 2,000 of 4,400.
#include <gtest/gtest.h>

#include "sim/workload/machine.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

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

}  // namespace
}  // namespace bubblesim::workload

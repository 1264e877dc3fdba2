#include "capture/replay/worker.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/control_segment.hpp"
#include "capture/replay/job_files.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

using namespace testing;
using ::testing::ElementsAre, ::testing::HasSubstr;
using Us = std::chrono::microseconds;
using enum program::StepKind;

constexpr Duration kPatience = std::chrono::seconds(60);

/// A pass of one kernel of 10 us, which the thread waits for.
JobPlan kernel_plan(std::uint32_t client) {
  JobPlan plan = empty_plan(1);
  plan.name = "job " + std::to_string(client);
  plan.client = ClientId{client};
  add_kernel(plan, 0, Us(10));
  plan.program.threads.push_back(
      {"main", {launch(Us(0), Us(0), 0), step(kWaitDevice), step(kEnd)}});
  plan.loop = LoopMode{3};
  return plan;
}

/// A rig of one worker, which is a thread of the test.
class Worker : public ::testing::Test {
 protected:
  void SetUp() override {
    clock_ = std::move(*make_turn_clock());
    part_ = clock_->join(Turn::kControl);
    board_ = std::move(*ControlBoard::create(*clock_));
  }

  void TearDown() override {
    for (const WorkerJob& job : jobs_) {
      std::remove(job.plan.c_str());
      std::remove(job.record.c_str());
    }
  }

  void add(const JobPlan& plan) {
    const std::string base = ::testing::TempDir() + "worker_test." + std::to_string(getpid()) +
                             "." + std::to_string(jobs_.size());
    jobs_.push_back({base + ".plan", base + ".record", "", ""});
    plans_.push_back(plan);
    ASSERT_TRUE(write_job_plan(jobs_.back().plan, plan));
  }

  /// Starts the worker, does what the test says beside it, and gives the worker's end.
  WorkerEnd beside(const std::function<void()>& rig) {
    const RunningGpu gpu(*clock_, sharing_jobs(plans_), small_gpu(), faults_);
    for (WorkerJob& job : jobs_) {
      if (job.device.empty()) job.device = gpu.name();
    }
    const WorkerSetup setup{clock_->address(), board_->name(), jobs_};
    WorkerEnd end;
    const std::uint32_t begun = clock_->parts_begun();
    std::thread worker([&] { end = run_worker(setup, open_fake_device); });
    EXPECT_TRUE(clock_->await_parts(begun + 1, kPatience));
    rig();
    // Its last steps need the clock to go on.
    part_.reset();
    worker.join();
    part_ = clock_->join(Turn::kControl);
    return end;
  }

  bool await(std::uint32_t client, WorkerState state) {
    for (int look = 0; look < 10'000; ++look) {
      const std::uint32_t seen = board_->changes();
      if (status(client).state == state) return true;
      board_->wait_for_change(seen, clock_->now() + Us(100));
    }
    return false;
  }

  WorkerStatus status(std::uint32_t client) const { return board_->status(ClientId{client}); }

  std::unique_ptr<HostClock> clock_;
  std::unique_ptr<ClockPart> part_;
  std::unique_ptr<ControlBoard> board_;
  std::vector<WorkerJob> jobs_;
  std::vector<JobPlan> plans_;
  measure::FakeGpuFaults faults_;
};

TEST_F(Worker, RunsItsJobsFromACommonStartAndWritesTheirRecords) {
  add(kernel_plan(0));
  JobPlan filler = kernel_plan(1);
  filler.loop.reset();
  filler.serve = ServeMode{};
  add(filler);
  const WorkerEnd end = beside([&] {
    ASSERT_TRUE(await(0, WorkerState::kReady));
    ASSERT_TRUE(await(1, WorkerState::kReady));
    board_->start(clock_->now() + Us(1000));
    ASSERT_TRUE(await(0, WorkerState::kDone));
    board_->stop_all();
    ASSERT_TRUE(await(1, WorkerState::kDone));
  });
  EXPECT_EQ(end.exit, WorkerExit::kWell) << end.text;
  const auto training = must(read_job_record(jobs_[0].record));
  EXPECT_THAT(in_us(training.iterations), ElementsAre(10, 20, 30));
  const auto served = must(read_job_record(jobs_[1].record));
  ASSERT_GE(served.passes.size(), 3U);
  EXPECT_EQ(in_us(served.passes[1]), 20);
  EXPECT_GT(status(1).progress, 0U);
}

TEST_F(Worker, AnUnreadablePlanIsAnInputFault) {
  add(kernel_plan(0));
  jobs_[0].plan += ".missing";
  const WorkerEnd end = beside([] {});
  EXPECT_EQ(end.exit, WorkerExit::kInput);
  EXPECT_THAT(end.text, HasSubstr(".missing"));
}

TEST_F(Worker, ADeviceThatIsNotThereFailsTheSeats) {
  add(kernel_plan(0));
  add(kernel_plan(1));
  jobs_[1].device = "none";
  const WorkerEnd end = beside([] {});
  EXPECT_EQ(end.exit, WorkerExit::kDevice);
  EXPECT_EQ(status(0).state, WorkerState::kFailed);
  EXPECT_THAT(status(1).text, HasSubstr("no fake GPU \"none\""));
}

TEST_F(Worker, AGateThatIsNotThereIsAnInputFault) {
  add(kernel_plan(0));
  jobs_[0].gate = "bubblesim.gate.none";
  const WorkerEnd end = beside([] {});
  EXPECT_EQ(end.exit, WorkerExit::kInput);
  EXPECT_THAT(status(0).text, HasSubstr("bubblesim.gate.none"));
}

TEST_F(Worker, TwoJobsOfOneClientAreAnInputFault) {
  add(kernel_plan(0));
  add(kernel_plan(0));
  const WorkerEnd end = beside([] {});
  EXPECT_EQ(end.exit, WorkerExit::kInput);
  EXPECT_THAT(end.text, HasSubstr("taken by process"));
}

TEST_F(Worker, AStopBeforeTheStartEndsIt) {
  add(kernel_plan(0));
  const WorkerEnd end = beside([&] {
    ASSERT_TRUE(await(0, WorkerState::kReady));
    board_->stop_all();
  });
  EXPECT_EQ(end.exit, WorkerExit::kWell);
  EXPECT_EQ(status(0).state, WorkerState::kFailed);
  EXPECT_EQ(status(0).text, "stopped before the start");
}

TEST_F(Worker, ADeviceFaultLeavesARecordOfWhatWasDone) {
  JobPlan plan = kernel_plan(0);
  plan.program.threads[0].steps = {launch(Us(0), Us(0), 0), step(kEnd)};
  add(plan);
  faults_.job_stall = measure::FakeJobStall{plan.client, Us(5)};
  const WorkerEnd end = beside([&] { board_->start(clock_->now()); });
  EXPECT_EQ(end.exit, WorkerExit::kDevice);
  EXPECT_EQ(status(0).state, WorkerState::kFailed);
  EXPECT_THAT(status(0).text, HasSubstr("does not answer: 3 operations of job 0"));
  const auto record = must(read_job_record(jobs_[0].record));
  EXPECT_EQ(record.iterations.size(), 3U);
}

TEST_F(Worker, ARecordThatCannotBeWrittenIsAFault) {
  add(kernel_plan(0));
  jobs_[0].record = "/nowhere/at/all.record";
  const WorkerEnd end = beside([&] { board_->start(clock_->now()); });
  EXPECT_EQ(end.exit, WorkerExit::kDevice);
  EXPECT_THAT(status(0).text, HasSubstr("/nowhere/at/all.record"));
}

/// The exit status of the program with these arguments.
int run_program(const std::string& arguments) {
  const std::string command =
      std::string(BUBBLESIM_REPLAY_PROGRAM) + " " + arguments + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(WorkerProgram, EndsWithTheKindOfItsFault) {
  const auto clock = wall_clock();
  const auto board = std::move(*ControlBoard::create(*clock));
  const std::string plan = ::testing::TempDir() + "worker_program." + std::to_string(getpid());
  const std::string rig = "--clock wall --control " + board->name();
  const std::string job = " --job " + plan + " --record " + plan + ".record --device ";
  EXPECT_EQ(run_program("--help"), 0);
  EXPECT_EQ(run_program("--clock wall"), 2);
  EXPECT_EQ(run_program("--clock moon --control x" + job + "fake:none"), 2);
  EXPECT_EQ(run_program(rig + job + "fake:none --gate a --gate b"), 2);
  EXPECT_EQ(run_program(rig + job + "fake:none"), 2);
  ASSERT_TRUE(write_job_plan(plan, kernel_plan(0)));
  EXPECT_EQ(run_program(rig + job + "fake:none"), 3);
  EXPECT_EQ(board->status(ClientId{0}).state, WorkerState::kFailed);
  EXPECT_THAT(board->status(ClientId{0}).text, HasSubstr("none"));
  std::remove(plan.c_str());
}

TEST(WorkerProgram, ARigThatHasDiedStopsItsJobs) {
  int name_pipe[2];
  ASSERT_EQ(pipe(name_pipe), 0);
  const pid_t rig = fork();
  if (rig == 0) {
    const auto clock = wall_clock();
    const auto board = ControlBoard::create(*clock);
    const std::string name = board ? (*board)->name() : "";
    const bool written = write(name_pipe[1], name.data(), name.size()) > 0;
    _exit(written ? 0 : 1);  // as if killed: the board stays
  }
  int status = 0;
  ASSERT_EQ(waitpid(rig, &status, 0), rig);
  char text[200] = {};
  ASSERT_GT(read(name_pipe[0], text, sizeof text - 1), 0);
  const auto clock = wall_clock();
  const auto seat = must(ControlSeat::take(text, *clock, ClientId{0}));
  EXPECT_TRUE(seat->stop_asked());
  shm_unlink((std::string("/") + text).c_str());
  close(name_pipe[0]);
  close(name_pipe[1]);
}

}  // namespace
}  // namespace bubblesim::capture

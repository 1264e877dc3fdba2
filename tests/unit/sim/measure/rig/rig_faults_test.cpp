// Processes of a rig that die, stop or never get ready: the others go on, and the result says so.
// Real processes on a fake GPU; instants are the fake clock's.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "capture/control/process_info.hpp"
#include "capture/rig/rig.hpp"
#include "sim/measure/fake_gpu.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
namespace plans = ::bubblesim::capture::testing;
using std::chrono::milliseconds, std::chrono::seconds;
using ::testing::HasSubstr;

/// Admits or holds every filler's launch; at each instant of `at` does something.
class Script final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {};
  }
  policy::Verdict on_launch(const policy::LaunchInfo& launch, policy::Instant,
                            policy::Actions&) override {
    const bool filler = launch.client != ClientId{0};
    return filler && holds ? policy::Verdict::kHold : policy::Verdict::kAdmit;
  }
  void on_gone(ClientId client, policy::Instant now, policy::Actions&) override {
    gone.emplace_back(client.value, now);
  }
  std::optional<policy::Instant> next_tick() const override { return at; }
  void on_tick(policy::Instant, policy::Actions& actions) override {
    at.reset();
    act(actions);
  }

  bool holds = false;
  std::optional<policy::Instant> at;
  std::function<void(policy::Actions&)> act = [](policy::Actions&) {};
  std::vector<std::pair<std::uint32_t, policy::Instant>> gone;
};

// The worker whose plan is of this job.
pid_t worker_of(const std::string& job) {
  for (const pid_t pid : descendants(::getpid())) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    std::string words(4096, '\0');
    file.read(words.data(), 4096);  // nothing of one that has just ended
    if (words.find("/" + job + ".plan") != std::string::npos) return pid;
  }
  return 0;
}

/// A kernel of 1 ms, then a wait for it: an iteration, or a pass.
JobPlan millisecond_job(std::uint32_t client) {
  JobPlan plan = plans::empty_plan(1);
  plan.name = client == 0 ? "training" : "filler";
  plan.client = ClientId{client};
  plan.role = client == 0 ? policy::Role::kTraining : policy::Role::kOffline;
  const std::uint32_t op = plans::add_kernel(plan, 0, milliseconds(1));
  plan.program.threads = {
      {"main",
       {plans::step(program::StepKind::kIteration), plans::launch({}, {}, op),
        plans::step(program::StepKind::kWaitDevice), plans::step(program::StepKind::kEnd)}}};
  plan.loop.reset();
  plan.serve.reset();
  if (client == 0) {
    plan.loop = LoopMode{50};
  } else {
    plan.serve = ServeMode{};
  }
  return plan;
}

class RigFaults : public ::testing::Test {
 protected:
  RigFaults() : fake_(measure::make_fake_gpu(plans::small_gpu())) {
    std::string name = (fs::temp_directory_path() / "bubblesim-rig-XXXXXX").string();
    place_.folder = ::mkdtemp(name.data());
    place_.worker = BUBBLESIM_REPLAY;
    place_.fake = fake_.get();
    place_.environment = {{"PATH", "/usr/bin:/bin"}};
    spec_.name = "script";
    setup_.substrate = Substrate::kTimeSliced;
    setup_.host.emplace();
    setup_.host->spec = &spec_;
    setup_.host->policy = &policy_;
    setup_.shares.resize(2);
    setup_.limit = seconds(1);
    for (const std::uint32_t client : {0u, 1u}) {
      setup_.jobs.push_back(millisecond_job(client));
      setup_.host->clients.emplace_back();
    }
  }
  ~RigFaults() override { fs::remove_all(place_.folder); }

  /// At 20 ms.
  void then(std::function<void(policy::Actions&)> act) {
    policy_.at = milliseconds(20);
    policy_.act = std::move(act);
  }

  Result<RigResult> run() { return run_rig(place_, setup_); }

  std::unique_ptr<FakeGpu> fake_;
  RigPlace place_;
  RigSetup setup_;
  policy::PolicySpec spec_;
  Script policy_;
};

TEST_F(RigFaults, WithoutAFaultTrainingDoesItsIterationsAndTheFillerEndsWithIt) {
  policy_.holds = true;  // training has the GPU to itself: 50 iterations of 1 ms
  const auto result = must(run());
  ASSERT_TRUE(result.jobs[0].record && result.jobs[1].record);
  EXPECT_EQ(result.jobs[0].record->iterations.size(), 50u);
  EXPECT_EQ(result.jobs[0].record->iterations.back(), milliseconds(50));
  EXPECT_TRUE(result.jobs[1].record->passes.empty());
  EXPECT_EQ(result.host->session.holds, 1u);
  EXPECT_TRUE(policy_.gone.empty() || policy_.gone.front().second >= milliseconds(50));
}

/// Training ends its one iteration at once, and leaves a kernel of 100 ms on the device.
TEST_F(RigFaults, FillersStopWithTheLastIterationAndNotWithTheProcess) {
  JobPlan& training = setup_.jobs[0];
  training.program.ops[0].duration = milliseconds(100);
  training.loop = LoopMode{1};
  std::erase_if(training.program.threads[0].steps, [](const program::Step& step) {
    return step.kind == program::StepKind::kWaitDevice;
  });
  const auto result = must(run());
  EXPECT_LT(result.jobs[0].record->iterations.back(), milliseconds(1));
  EXPECT_LT(result.jobs[1].record->ended, milliseconds(20));
  EXPECT_LT(result.length, milliseconds(20));
}

TEST_F(RigFaults, AFillerThatHasServedItsRequestsHasNotDied) {
  setup_.jobs[1].serve->online = true;
  setup_.jobs[1].serve->arrivals = {milliseconds(5)};
  const auto result = must(run());
  EXPECT_EQ(result.jobs[1].record->requests.size(), 1u);
  EXPECT_TRUE(policy_.gone.empty());
  EXPECT_EQ(result.counters.count("gate_clients_died"), 0u);
}

TEST_F(RigFaults, AFillerThatIsKilledIsGoneAndTrainingGoesOn) {
  then([](policy::Actions&) { ::kill(worker_of("job1"), SIGKILL); });
  const auto result = must(run());
  ASSERT_TRUE(result.jobs[0].record);
  EXPECT_EQ(result.jobs[0].record->iterations.size(), 50u);
  EXPECT_FALSE(result.jobs[1].record);
  EXPECT_EQ(result.jobs[1].end, "killed by signal 9");
  EXPECT_EQ(result.counters.count("rig_jobs_died"), 1u);
  ASSERT_EQ(policy_.gone.size(), 1u);
  EXPECT_EQ(policy_.gone.front().first, 1u);
}

TEST_F(RigFaults, AHeldFillerThatIsKilledIsGoneToo) {
  policy_.holds = true;
  then([](policy::Actions& actions) {
    EXPECT_EQ(actions.held(ClientId{1}), 1u);
    ::kill(worker_of("job1"), SIGKILL);
  });
  const auto result = must(run());
  EXPECT_EQ(result.jobs[0].record->iterations.back(), milliseconds(50));
  EXPECT_EQ(result.jobs[1].end, "killed by signal 9");
  // Time does not wait for one that is held: on a busy machine the run may be over first.
  EXPECT_LE(policy_.gone.size(), 1u);
}

TEST_F(RigFaults, TrainingThatIsKilledEndsTheRunAndLeavesTheFillersRecord) {
  then([](policy::Actions&) { ::kill(worker_of("job0"), SIGKILL); });
  const auto result = must(run());
  EXPECT_FALSE(result.jobs[0].record);
  ASSERT_TRUE(result.jobs[1].record);
  EXPECT_FALSE(result.jobs[1].record->passes.empty());
}

TEST_F(RigFaults, AWorkerThatIsStuckIsKilled) {
  setup_.patience = seconds(2);  // of the machine's time
  then([](policy::Actions&) { ::kill(worker_of("job1"), SIGSTOP); });
  const auto result = must(run());
  // Time has stood still for training too, which is not its fault.
  ASSERT_TRUE(result.jobs[0].record) << result.jobs[0].end;
  EXPECT_EQ(result.jobs[0].record->iterations.size(), 50u);
  EXPECT_THAT(result.jobs[1].end, HasSubstr("stuck, so killed by signal 9"));
}

TEST_F(RigFaults, WorkersEndWhenTheRigIsKilled) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // they become this process's
  then([](policy::Actions&) { ::kill(::getpid(), SIGKILL); });
  const pid_t rig = ::fork();
  if (rig == 0) {
    (void)run();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(rig, &status, 0), rig);
  EXPECT_TRUE(WIFSIGNALED(status));
  const auto ended = [] { return worker_of("job0") == 0 && worker_of("job1") == 0; };
  for (int i = 0; i < 3000 && !ended(); ++i) ::usleep(10'000);
  EXPECT_TRUE(ended());
  for (const pid_t left : {worker_of("job0"), worker_of("job1")}) {
    if (left > 0) ::kill(left, SIGKILL);
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST_F(RigFaults, AnIllegalDecisionIsTheFaultOfTheRun) {
  then([](policy::Actions& actions) { actions.release(ClientId{1}); });
  EXPECT_THAT(error_of(run()).text(), HasSubstr("policy script: illegal decision at 20ms"));
}

TEST_F(RigFaults, AStopFromOutsideEndsTheRun) {
  static std::atomic<bool> stop;
  stop = false;
  place_.stop = &stop;
  then([](policy::Actions&) { stop = true; });
  EXPECT_EQ(error_of(run()).text(), "stopped before its end");
  EXPECT_EQ(worker_of("job0"), 0);
}

TEST_F(RigFaults, AJobThatTheDeviceCannotHoldKeepsTheRunFromStarting) {
  setup_.jobs[1].memory = Bytes{std::uint64_t{2} << 30};
  EXPECT_THAT(error_of(run()).text(), HasSubstr("filler: cannot run: "));
}

TEST_F(RigFaults, AProgramThatIsNoWorkerIsSaidToHaveEnded) {
  place_.worker = "/bin/false";
  EXPECT_THAT(error_of(run()).text(), HasSubstr("exited with 1"));
}

TEST_F(RigFaults, StreamsOfOneProcessShareItsWorker) {
  setup_.substrate = Substrate::kStreams;
  policy_.holds = true;
  const auto result = must(run());
  EXPECT_EQ(result.jobs[0].record->iterations.back(), milliseconds(50));
  EXPECT_TRUE(result.jobs[1].record.has_value());
}

}  // namespace
}  // namespace bubblesim::capture

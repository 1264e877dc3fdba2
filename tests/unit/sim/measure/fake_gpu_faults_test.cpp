// What a fake GPU tells hosts, and what happens when something goes wrong. One iteration: a kernel
// of 10 us from 1 us on, seen 2 us after its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/measure/job_plans.hpp"
#include "tests/unit/sim/measure/plan_player.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::measure {
namespace {

using namespace std::chrono_literals;
using capture::HostTime;
using testing::ElementsAre;
using testing::HasSubstr;
using workload::ProgramMaker;

// begin() is 1 ms before the common start.
constexpr Duration kStart = 1ms;

PlayedJob job(std::uint32_t client, std::uint64_t passes = 3) {
  const ProgramMaker maker = ProgramMaker().iteration(0).kernel(1, 10).wait_stream(0, 2).end();
  PlayedJob made{plan_of_program(maker.program(), workload::plain_gpu()), passes};
  made.plan.client = ClientId{client};
  made.plan.name = "job " + std::to_string(client);
  return made;
}

/// Notes what it is told, and when: instants since the common start.
class News final : public capture::DeviceListener {
 public:
  void on_started(const capture::OpInstance& op, HostTime start) override {
    started.push_back({op.pass, since(start)});
  }
  void on_finished(const capture::OpInstance& op, HostTime start, HostTime end) override {
    finished.push_back({op.pass, since(start), since(end)});
  }
  struct Start {
    std::uint64_t pass;
    Duration at;
    friend bool operator==(const Start&, const Start&) = default;
  };
  struct End {
    std::uint64_t pass;
    Duration start, at;
    friend bool operator==(const End&, const End&) = default;
  };
  std::vector<Start> started;
  std::vector<End> finished;

 private:
  static Duration since(HostTime time) { return time.time_since_epoch() - kStart; }
};

TEST(FakeGpu, TellsAListenerTheTrueTimes) {
  News news;
  PlayedJob single = job(0, 2);
  single.listener = &news;
  const Played played = play(workload::plain_gpu(), {single}).front();
  EXPECT_THAT(played.iterations, ElementsAre(13us, 26us));
  EXPECT_THAT(news.started, ElementsAre(News::Start{0, 1us}, News::Start{1, 14us}));
  EXPECT_THAT(news.finished, ElementsAre(News::End{0, 1us, 11us}, News::End{1, 14us, 24us}));
  EXPECT_EQ(played.counters.count("fake_device_notices_lost"), 0U);
}

TEST(FakeGpu, TellsOfEverythingBeforeItIsClosedHoweverLate) {
  News news;
  PlayedJob single = job(0, 2);
  single.listener = &news;
  FakeGpuFaults faults;
  faults.late_notices = 5ms;
  const Played played = play(workload::plain_gpu(), {single}, {}, {}, faults).front();
  EXPECT_THAT(played.iterations, ElementsAre(13us, 26us));
  EXPECT_EQ(news.finished.size(), 2U);
}

// From 30 us on the device stands still for 1 ms: the third iteration, from 26 us to 39 us, has
// begun its kernel at 27 us.
TEST(FakeGpu, ThatStandsStillGoesOnWhereItWas) {
  FakeGpuFaults faults;
  faults.device_stall = FakeDeviceStall{kStart + 30us, 1ms};
  const Played played = play(workload::plain_gpu(), {job(0)}, {}, {}, faults).front();
  EXPECT_THAT(played.iterations, ElementsAre(13us, 26us, 1039us));
  EXPECT_EQ(played.fault, "");
}

// At 25 us nothing runs; what is launched at 27 us begins when the device goes on.
TEST(FakeGpu, TakesLaunchesOnceItGoesOn) {
  FakeGpuFaults faults;
  faults.device_stall = FakeDeviceStall{kStart + 25us, 1ms};
  const Played played = play(workload::plain_gpu(), {job(0)}, {}, {}, faults).front();
  EXPECT_THAT(played.iterations, ElementsAre(13us, 26us, 1025us + 10us + 2us));
}

TEST(FakeGpu, ThatNoLongerAnswersOneJobServesTheOthers) {
  const ProgramMaker maker = ProgramMaker().iteration(0).kernel(1, 10).end();
  PlayedJob stuck{plan_of_program(maker.program(), workload::plain_gpu()), 1};
  stuck.plan.client = ClientId{1};
  stuck.plan.name = "stuck";
  FakeGpuFaults faults;
  faults.job_stall = FakeJobStall{ClientId{1}, kStart + 5us};
  const auto played = play(workload::plain_gpu(), {job(0), stuck}, {}, {}, faults);
  EXPECT_THAT(played[0].iterations, ElementsAre(13us, 26us, 39us));
  EXPECT_EQ(played[0].fault, "");
  EXPECT_THAT(played[1].fault, HasSubstr("does not answer: 1 operations of stuck"));
}

// Its kernel ends; what would have waited for more is let go.
TEST(FakeGpu, LetsTheWorkOfAJobThatIsGoneEnd) {
  const ProgramMaker maker = ProgramMaker().iteration(0).kernel(1, 10).kernel(0, 30).end();
  PlayedJob gone{plan_of_program(maker.program(), workload::plain_gpu()), 1};
  gone.plan.client = ClientId{1};
  gone.dies = true;
  const auto played = play(workload::plain_gpu(), {job(0), gone});
  EXPECT_THAT(played[0].iterations, ElementsAre(13us, 26us, 39us));
  EXPECT_EQ(played[1].in_flight, 2U);
}

// The second operation waits for one that is never launched: nobody waits for it after the end.
TEST(FakeGpu, ClosesWithWorkThatNeverRuns) {
  const ProgramMaker maker = ProgramMaker(2).iteration(0).kernel(1, 10, 0).end();
  PlayedJob half{plan_of_program(maker.program(), workload::plain_gpu()), 1};
  half.plan.program.ops.push_back(half.plan.program.ops.front());  // launched by no step
  half.plan.program.ops.front().edge_count = 1;
  half.plan.program.edges = {{1, {}}};
  const Played played = play(workload::plain_gpu(), {half}).front();
  EXPECT_EQ(played.fault, "");
  EXPECT_EQ(played.in_flight, 1U);
}

TEST(FakeGpu, RefusesMoreMemoryThanThereIs) {
  hardware::GpuSpec spec = workload::plain_gpu();
  spec.memory = Bytes{1000};
  PlayedJob first = job(0);
  first.plan.memory = Bytes{600};
  PlayedJob second = job(1);
  second.plan.memory = Bytes{500};
  const auto played = play(spec, {first, second});
  EXPECT_EQ(played[0].fault, "");
  EXPECT_THAT(played[1].fault, HasSubstr("job 1 needs 500B of device memory, free are 400B"));
  EXPECT_EQ(play(spec, {first, second}, {.unified_memory = true})[1].fault, "");
}

TEST(FakeGpu, HasAPlaceForEachClientOnce) {
  auto clock = capture::make_turn_clock();
  ASSERT_TRUE(clock);
  const auto part = (*clock)->join(capture::Turn::kControl);
  const auto gpu = make_fake_gpu(workload::plain_gpu());
  capture::RigSetup setup;
  setup.jobs.push_back({job(0).plan, 100});
  const auto address = gpu->begin(**clock, setup, {}, {});
  ASSERT_TRUE(address);
  const std::string name = address->substr(5);
  const auto device = capture::open_fake_device(name, **clock, ClientId{0});
  ASSERT_TRUE(device);
  EXPECT_GT((*device)->resident_blocks(0), 0U);
  const auto again = capture::open_fake_device(name, **clock, ClientId{0});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text(), HasSubstr("open already"));
  EXPECT_THAT(capture::open_fake_device(name, **clock, ClientId{3}).error().text(),
              HasSubstr("no job of client 3"));
  EXPECT_THAT(capture::open_fake_device("nobody", **clock, ClientId{0}).error().text(),
              HasSubstr("no fake GPU \"nobody\""));
}

}  // namespace
}  // namespace bubblesim::measure

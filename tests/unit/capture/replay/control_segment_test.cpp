#include "capture/replay/control_segment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "capture/clock/host_clock.hpp"
#include "tests/fault.hpp"

namespace bubblesim::capture {
namespace {

class ControlSegment : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = ControlBoard::create(*clock_);
    ASSERT_TRUE(made) << made.error().text();
    board_ = std::move(*made);
  }

  // Nobody waits in these tests.
  std::unique_ptr<HostClock> clock_ = wall_clock();
  std::unique_ptr<ControlBoard> board_;
};

TEST_F(ControlSegment, ASeatNobodyHasTakenIsStarting) {
  const WorkerStatus status = board_->status(ClientId{15});
  EXPECT_EQ(status.state, WorkerState::kStarting);
  EXPECT_EQ(status.pid, 0U);
  EXPECT_EQ(status.text, "");
  EXPECT_EQ(board_->fault(), "");
}

TEST_F(ControlSegment, TheBoardSeesWhatASeatSays) {
  auto seat = ControlSeat::take(board_->name(), *clock_, ClientId{2});
  ASSERT_TRUE(seat) << seat.error().text();
  EXPECT_EQ(board_->status(ClientId{2}).state, WorkerState::kPreparing);
  EXPECT_EQ(board_->status(ClientId{2}).pid, static_cast<std::uint32_t>(getpid()));
  (*seat)->say("stand-ins 1 of 2");
  EXPECT_EQ(board_->status(ClientId{2}).text, "stand-ins 1 of 2");
  (*seat)->set_state(WorkerState::kRunning);
  (*seat)->add_progress();
  (*seat)->add_iteration();
  (*seat)->fail("the device is gone");
  const WorkerStatus status = board_->status(ClientId{2});
  EXPECT_EQ(status.state, WorkerState::kFailed);
  EXPECT_EQ(status.text, "the device is gone");
  EXPECT_EQ(status.progress, 2U);
  EXPECT_EQ(status.iterations, 1U);
  EXPECT_EQ(board_->changes(), 3U);  // preparing, running, failed
  EXPECT_EQ(board_->status(ClientId{1}).state, WorkerState::kStarting);
}

TEST_F(ControlSegment, ASeatHearsOfStartAndStop) {
  auto seat = ControlSeat::take(board_->name(), *clock_, ClientId{0});
  ASSERT_TRUE(seat);
  EXPECT_FALSE((*seat)->start());
  board_->start(HostTime{Duration{42}});
  EXPECT_EQ((*seat)->start(), HostTime{Duration{42}});
  board_->stop(ClientId{1});
  EXPECT_FALSE((*seat)->stop_asked());
  board_->stop(ClientId{0});
  EXPECT_TRUE((*seat)->stop_asked());
  EXPECT_EQ((*seat)->calls(), 3U);
  auto late = ControlSeat::take(board_->name(), *clock_, ClientId{1});
  ASSERT_TRUE(late);
  EXPECT_TRUE((*late)->stop_asked());
}

TEST_F(ControlSegment, ASeatIsTakenOnce) {
  auto first = ControlSeat::take(board_->name(), *clock_, ClientId{0});
  ASSERT_TRUE(first);
  const auto second = error_of(ControlSeat::take(board_->name(), *clock_, ClientId{0}));
  EXPECT_NE(second.message.find("taken by process"), std::string::npos);
  EXPECT_FALSE(ControlSeat::take(board_->name(), *clock_, ClientId{16}));
}

TEST_F(ControlSegment, AWorkerWithoutASeatIsHeardTheFirstTime) {
  tell_control_fault(board_->name(), *clock_, "plan.json: not JSON");
  tell_control_fault(board_->name(), *clock_, "another");
  EXPECT_EQ(board_->fault(), "plan.json: not JSON");
  tell_control_fault("no-such-board", *clock_, "nobody hears");
}

TEST_F(ControlSegment, TheNameGoesWithTheBoardAndSeatsStay) {
  auto seat = ControlSeat::take(board_->name(), *clock_, ClientId{0});
  ASSERT_TRUE(seat);
  const std::string name = board_->name();
  board_.reset();
  (*seat)->set_state(WorkerState::kDone);
  EXPECT_NE(error_of(ControlSeat::take(name, *clock_, ClientId{1})).message.find(name),
            std::string::npos);
}

TEST_F(ControlSegment, LongTextsAreCut) {
  auto seat = ControlSeat::take(board_->name(), *clock_, ClientId{0});
  ASSERT_TRUE(seat);
  (*seat)->fail(std::string(5000, 'x'));
  EXPECT_EQ(board_->status(ClientId{0}).text, std::string(2000, 'x'));
}

}  // namespace
}  // namespace bubblesim::capture

#include "capture/clock/process_mark.hpp"

#include <gtest/gtest.h>

#include "tests/unit/capture/clock/child_process.hpp"

namespace bubblesim::capture {
namespace {

using bubblesim::testing::ChildProcess;

TEST(ProcessMark, ThisProcessLives) {
  const ProcessMark mark = this_process();
  EXPECT_EQ(mark.pid, getpid());
  EXPECT_GT(mark.start, 0u);
  EXPECT_GT(mark.space, 0u);
  EXPECT_FALSE(has_ended(mark));
  EXPECT_EQ(mark, this_process());
}

TEST(ProcessMark, AZombieHasEndedAndSoHasWhatIsGone) {
  ProcessMark mark = this_process();
  ChildProcess child([] { pause(); });
  mark.pid = child.pid();
  mark.start = 0;  // not known
  EXPECT_FALSE(has_ended(mark));
  child.kill_only();
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(has_ended(mark));
  child.wait();
  EXPECT_TRUE(has_ended(mark));
}

TEST(ProcessMark, AnotherProcessOfTheSameNumberIsNotTheOne) {
  ProcessMark mark = this_process();
  mark.start -= 1;
  EXPECT_TRUE(has_ended(mark));
}

TEST(ProcessMark, WhatIsOfAnotherNamespaceCannotBeSeen) {
  ProcessMark mark = this_process();
  mark.start -= 1;
  mark.space += 1;
  EXPECT_FALSE(has_ended(mark));
  mark.space = 0;
  EXPECT_FALSE(has_ended(mark));
  EXPECT_FALSE(has_ended(ProcessMark{}));
}

}  // namespace
}  // namespace bubblesim::capture

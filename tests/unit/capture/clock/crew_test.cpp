#include "capture/clock/crew.hpp"

#include <gtest/gtest.h>

#include "capture/clock/host_clock.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;

TEST(Crew, WaitsInTheClocksTimeUntilTheLastThreadHasEnded) {
  auto clock = *make_turn_clock();
  const auto part = clock->join(Turn::kControl);
  Crew crew(*clock);
  for (const Duration length : {5ms, 9ms, 2ms}) {
    crew.start(Turn::kFiller, [&clock, length] { clock->sleep_until(HostTime{length}); });
  }
  crew.wait();
  EXPECT_EQ(clock->now(), HostTime{9ms});
}

TEST(Crew, CanStartThreadsAgainAndWaitsForThemWhenItDies) {
  auto clock = *make_turn_clock();
  const auto part = clock->join(Turn::kControl);
  int done = 0;
  {
    Crew crew(*clock);
    crew.start(Turn::kFiller, [&done] { ++done; });
    crew.wait();
    EXPECT_EQ(done, 1);
    crew.wait();
    crew.start(Turn::kFiller, [&done] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

TEST(Crew, WorksOnTheWallClock) {
  const auto clock = wall_clock();
  std::atomic<int> done{0};
  {
    Crew crew(*clock);
    for (int i = 0; i < 8; ++i) crew.start(Turn::kFiller, [&done] { ++done; });
  }
  EXPECT_EQ(done, 8);
}

}  // namespace
}  // namespace bubblesim::capture

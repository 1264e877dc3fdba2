// Where ranks meet.
#include "sim/network/rendezvous.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/unit/sim/instant.hpp"

namespace bubblesim::network {
namespace {

/// Writes down what it is told, into a list that several may share.
class Rank final : public Participant {
 public:
  using Told = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  explicit Rank(Told& told) : told_(told) {}
  void on_all_arrived(std::uint64_t cookie, SimTime now) override {
    told_.emplace_back(cookie, to_ns(now));
    if (then) then();
  }
  std::function<void()> then;

 private:
  Told& told_;
};

class RendezvousTest : public ::testing::Test {
 protected:
  Rank::Told told;
};

TEST_F(RendezvousTest, EveryoneIsToldWhenTheLastHasArrivedInOrderOfArrival) {
  Rank a(told);
  Rank b(told);
  Rendezvous meeting({3});
  meeting.arrive(0, b, 11, at(10));
  meeting.arrive(0, a, 12, at(20));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(meeting.waiting(), 1U);
  meeting.arrive(0, a, 13, at(30));
  EXPECT_EQ(told, (Rank::Told{{11, 30}, {12, 30}, {13, 30}}));
  EXPECT_EQ(meeting.waiting(), 0U);
}

TEST_F(RendezvousTest, ALoneParticipantMeetsItself) {
  Rank a(told);
  Rendezvous meeting({1});
  meeting.arrive(0, a, 5, at(7));
  EXPECT_EQ(told, (Rank::Told{{5, 7}}));
}

TEST_F(RendezvousTest, CollectivesDoNotMix) {
  Rank a(told);
  Rendezvous meeting({2, 2});
  meeting.arrive(0, a, 1, at(1));
  meeting.arrive(1, a, 2, at(2));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(meeting.waiting(), 2U);
  meeting.arrive(1, a, 3, at(3));
  EXPECT_EQ(told, (Rank::Told{{2, 3}, {3, 3}}));
  EXPECT_EQ(meeting.waiting(), 1U);
}

TEST_F(RendezvousTest, ACollectiveIsUsedAgainInTheNextPass) {
  Rank a(told);
  Rendezvous meeting({2});
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    meeting.arrive(0, a, pass * 2, at(1));
    meeting.arrive(0, a, pass * 2 + 1, at(1));
  }
  EXPECT_EQ(told, (Rank::Told{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}}));
}

TEST_F(RendezvousTest, ABufferedSendWaitsOnlyWhileItsLastUseIsNotReceived) {
  Rank a(told);
  Rank b(told);
  engine::Engine engine;
  Rendezvous meeting(engine, {{.participants = 2, .sender = 5}}, {});
  EXPECT_TRUE(meeting.is_sender(0, 5));
  EXPECT_FALSE(meeting.is_sender(0, 6));
  meeting.send(0, a, 1, at(10));
  EXPECT_EQ(told, (Rank::Told{{1, 10}}));
  meeting.send(0, a, 2, at(20));
  EXPECT_EQ(meeting.waiting(), 1U);
  meeting.arrive(0, b, 11, at(30));  // takes the first, makes room for the second
  EXPECT_EQ(told, (Rank::Told{{1, 10}, {2, 30}, {11, 30}}));
  meeting.arrive(0, b, 12, at(40));
  EXPECT_EQ(told.back(), (std::pair<std::uint64_t, std::int64_t>{12, 40}));
  meeting.arrive(0, b, 13, at(50));  // before its send
  EXPECT_EQ(meeting.waiting(), 1U);
  meeting.send(0, a, 3, at(60));
  EXPECT_EQ(told, (Rank::Told{{1, 10}, {2, 30}, {11, 30}, {12, 40}, {13, 60}, {3, 60}}));
  EXPECT_EQ(meeting.waiting(), 0U);
}

// Both arrive at the next collective from inside the call that tells them of the first, and at
// the same collective again.
TEST_F(RendezvousTest, WhoIsToldMayArriveElsewhereAtOnce) {
  Rank a(told);
  Rank b(told);
  Rendezvous meeting({2, 2});
  std::uint64_t next = 100;
  const auto go_on = [&] {
    if (next < 102) meeting.arrive(1, a, next++, at(9));
  };
  a.then = go_on;
  b.then = go_on;
  meeting.arrive(0, a, 1, at(8));
  meeting.arrive(0, b, 2, at(9));
  EXPECT_EQ(told, (Rank::Told{{1, 9}, {2, 9}, {100, 9}, {101, 9}}));
  EXPECT_EQ(meeting.waiting(), 0U);
}

TEST_F(RendezvousTest, LateArrivalsTakeThePlacesThatTheyWouldHaveHad) {
  Rank a(told);
  Rendezvous meeting({5});
  std::vector<Arrival> arrivals{{at(20), engine::Phase::kDispatch, 0, &a, 3},
                                {at(10), engine::Phase::kDispatch, 0, &a, 2},
                                {at(10), engine::Phase::kCompletion, 0, &a, 1},
                                {at(20), engine::Phase::kDispatch, 0, &a, 4}};
  meeting.arrive_late(arrivals);
  EXPECT_TRUE(told.empty());
  meeting.arrive(0, a, 5, at(30));
  EXPECT_EQ(told, (Rank::Told{{1, 30}, {2, 30}, {3, 30}, {4, 30}, {5, 30}}));
}

TEST(RendezvousDeathTest, TheLastArrivalIsNeverLate) {
  Rank::Told told;
  Rank a(told);
  Rendezvous meeting({2});
  meeting.arrive(0, a, 1, at(1));
  std::vector<Arrival> arrivals{{at(2), engine::Phase::kDispatch, 0, &a, 2}};
  EXPECT_DEATH(meeting.arrive_late(arrivals), "earlier than it can be");
}

// Of collective 0 one has arrived; of 1 nobody; 2 has a participant that is somewhere else.
TEST_F(RendezvousTest, IsCompleteNoSoonerThanTheLastOfThoseWhoAreMissing) {
  Rank a(told);
  Rendezvous meeting({3, 2, 2});
  meeting.arrive(0, a, 1, at(1));
  meeting.expect(0, at(30));
  meeting.expect(1, at(50));
  meeting.expect(0, at(20));
  meeting.expect(1, at(10));
  meeting.expect(2, at(5));
  EXPECT_EQ(meeting.next_completion(), at(30));
  meeting.expect(1, at(60));  // another look
  meeting.expect(1, at(70));
  EXPECT_EQ(meeting.next_completion(), at(70));
  EXPECT_EQ(meeting.next_completion(), SimTime::max());
}

}  // namespace
}  // namespace bubblesim::network

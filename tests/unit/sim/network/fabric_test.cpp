// Links shared by transfers. 1 GB/s is one byte a nanosecond.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "sim/network/fabric.hpp"
#include "sim/network/rendezvous.hpp"
#include "tests/unit/sim/instant.hpp"

namespace bubblesim::network {
namespace {

constexpr BytesPerSecond kByteANanosecond{1e9};

/// Bytes over each of some links.
using Loads = std::vector<std::pair<std::uint32_t, double>>;

Transfer over(const Loads& loads, std::int64_t latency = 0, std::int64_t least = 0) {
  Transfer out;
  out.latency = Duration{latency};
  out.least = Duration{least};
  for (const auto& [link, bytes] : loads) out.loads.push_back({LinkId{link}, bytes});
  return out;
}

/// Starts transfers, or does something else, at given times; writes down when each transfer ended.
class Traffic final : public FlowListener, public engine::EventHandler {
 public:
  using Ends = std::vector<std::pair<std::uint64_t, std::int64_t>>;

  explicit Traffic(const LinkTable& links, const std::vector<SlowLink>& slow = {})
      : fabric(engine, links, slow), entity_(engine.add_entity(*this, engine::Phase::kHost)) {}

  /// In order of time.
  void add(std::int64_t when, std::function<void(SimTime)> action) {
    actions_.emplace_back(at(when), std::move(action));
  }
  void add(std::int64_t when, const Transfer& transfer) {
    transfers_.push_back(transfer);
    add(when, [this, cookie = transfers_.size() - 1](SimTime now) {
      fabric.start(transfers_[cookie], *this, cookie, now);
    });
  }
  Ends ends() {
    if (!actions_.empty()) engine.schedule(entity_, actions_.front().first);
    engine.run_until();
    EXPECT_EQ(fabric.active(), 0U);
    return ends_;
  }
  void on_event(SimTime now) override {
    while (next_ < actions_.size() && actions_[next_].first == now) actions_[next_++].second(now);
    if (next_ < actions_.size()) engine.schedule(entity_, actions_[next_].first);
  }
  void on_flow_finished(std::uint64_t cookie, SimTime now) override {
    ends_.emplace_back(cookie, to_ns(now));
    if (then) then(cookie, now);
  }

  engine::Engine engine;
  Fabric fabric;
  std::function<void(std::uint64_t, SimTime)> then;

 private:
  engine::EntityId entity_;
  std::vector<Transfer> transfers_;
  std::vector<std::pair<SimTime, std::function<void(SimTime)>>> actions_;
  std::size_t next_ = 0;
  Ends ends_;
};

struct Added {
  std::int64_t when;
  Transfer transfer;
};
struct Row {
  std::string name;
  LinkTable links;
  std::vector<Added> added;
  Traffic::Ends ends;
  std::vector<SlowLink> slow{};
};

TEST(Fabric, TransfersEndAsTheirSharesLetThem) {
  const std::vector<Row> rows{
      {"ATransferAloneTakesItsLatencyAndItsBytesOverTheLink", {{1e9}}, {{10, over({{0, 1000}}, 5)}},
       {{0, 1015}}},
      // 1,000 bytes at 1 byte/ns from 0; a quarter of that from 200 to 1,000: 200 + 200 bytes by
      // then, 600 more by 1,600.
      {"AFaultSlowsALinkWhileItLasts", {{1e9}}, {{0, over({{0, 1000}})}}, {{0, 1600}},
       {{LinkId{0}, 4, at(200), at(1000)}}},
      {"AFaultThatBeganWhileNothingMovedCounts", {{1e9}}, {{0, over({{0, 50}})},
       {500, over({{0, 1000}})}}, {{0, 50}, {1, 2500}}, {{LinkId{0}, 2, at(100), SimTime::max()}}},
      // 50 by 100, 50 by 600, 100 by 700.
      {"OneFaultMayFollowAnotherAtOnce", {{1e9}}, {{0, over({{0, 200}})}}, {{0, 700}},
       {{LinkId{0}, 2, at(0), at(100)}, {LinkId{0}, 10, at(100), at(600)}}},
      // The fault holds the first transfer to 0.1 bytes/ns, on both of its links: 0.9 are left.
      {"WhatAFaultLeavesUnusedGoesToOthers", {{1e9}, {0.5e9}}, {{0, over({{0, 100}, {1, 100}})},
       {0, over({{0, 900}})}}, {{0, 1000}, {1, 1000}}, {{LinkId{1}, 5, at(0), SimTime::max()}}},
      {"EndsAreRoundedUp", {{3e9}}, {{0, over({{0, 1000}})}}, {{0, 334}}},
      {"TwoEqualTransfersOnOneLinkTakeTwiceAsLong", {{1e9}}, {{0, over({{0, 1000}})},
       {0, over({{0, 1000}})}}, {{0, 2000}, {1, 2000}}},
      // Both at half speed for 1000 ns; then the longer has 1500 bytes left and the link to itself.
      {"WhoIsLeftAloneSpeedsUp", {{1e9}}, {{0, over({{0, 500}})}, {0, over({{0, 2000}})}},
       {{0, 1000}, {1, 2500}}},
      // The first has moved 400 bytes when the second comes; both then share until it ends.
      {"ANewcomerSlowsWhoIsThere", {{1e9}}, {{0, over({{0, 1000}})}, {400, over({{0, 300}})}},
       {{1, 1000}, {0, 1300}}},
      // The textbook example: a crosses both links, b the first (1), c the second (2). a and b get
      // 0.5 each; c gets the 1.5 that a leaves.
      {"ThreeTransfersOverTwoLinksShareMaxMinFairly", {{1e9}, {2e9}},
       {{0, over({{0, 1000}, {1, 1000}})}, {0, over({{0, 1000}})}, {0, over({{1, 3000}})}},
       {{0, 2000}, {1, 2000}, {2, 2000}}},
      // c is on another link than a, and changes only because b does: b and a share link 0, b and c
      // share link 1. While all run, each gets 0.5; when a ends at 200, b could go faster but c
      // holds it.
      {"AChangeReachesTransfersThroughOthers", {{1e9}, {1e9}}, {{0, over({{0, 100}})},
       {0, over({{0, 300}, {1, 300}})}, {0, over({{1, 400}})}}, {{0, 200}, {1, 600}, {2, 700}}},
      // Alone it could take 1000 ns of the link, but its channels need 4000; the other gets the
      // rest.
      {"ATransferIsNoFasterThanItsChannels", {{1e9}}, {{0, over({{0, 1000}}, 0, 4000)},
       {0, over({{0, 1500}})}}, {{1, 2000}, {0, 4000}}},
      // The second has a tenth of its bytes on link 0 as well, so all speeds rise until link 0 is
      // full: 1 / 1.1 each. From 990 on the second has link 1 to itself, and 100 bytes left.
      {"LoadsOfATransferMoveInProportion", {{1e9}, {1e9}}, {{0, over({{0, 900}})},
       {0, over({{0, 100}, {1, 1000}})}}, {{0, 990}, {1, 1090}}},
      {"TransfersOnDifferentLinksDoNotDisturbEachOther", {{1e9}, {1e9}}, {{0, over({{0, 1000}})},
       {7, over({{1, 1000}})}}, {{0, 1000}, {1, 1007}}},
      {"NothingToMoveEndsAfterLatencyAndChannels", {}, {{3, over({})}, {3, over({}, 10, 20)}},
       {{0, 3}, {1, 33}}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Traffic run(row.links, row.slow);
    for (const auto& [when, transfer] : row.added) run.add(when, transfer);
    EXPECT_EQ(run.ends(), row.ends);
  }
}

// Two of 1,000 bytes share a link of 1 byte/ns: 200 each by 400, when the first is held. The other
// ends 800 later, at 1,200; the first goes on at 1,500, for its last 800.
TEST(Fabric, AFlowThatIsHeldLeavesItsLinksToTheOthers) {
  Traffic run({kByteANanosecond});
  run.add(0, over({{0, 1000}}));
  run.add(0, over({{0, 1000}}));
  run.add(400, [&](SimTime now) { run.fabric.hold(0, now); });
  run.add(1500, [&](SimTime now) { run.fabric.go_on(0, now); });
  EXPECT_EQ(run.ends(), (Traffic::Ends{{1, 1200}, {0, 2300}}));
}

// Of a latency of 100, 30 have passed; and 20 of the 50 that bytes without a link take.
TEST(Fabric, LatenciesAndTimesWithoutALinkStandStillTogether) {
  Traffic run({});
  run.add(0, over({}, 100, 50));
  run.add(30, [&](SimTime now) { run.fabric.hold(0, now); });
  run.add(1000, [&](SimTime now) { run.fabric.go_on(0, now); });  // its bytes move from 1,070 on
  run.add(1090, [&](SimTime now) { run.fabric.hold(0, now); });
  run.add(2000, [&](SimTime now) { run.fabric.go_on(0, now); });
  EXPECT_EQ(run.ends(), (Traffic::Ends{{0, 2030}}));
}

// Held while a fault begins that quarters the link: 400 bytes by then, 600 at a quarter from 1,000.
TEST(Fabric, AFlowThatGoesOnFindsItsLinkAsItIsThen) {
  Traffic run({kByteANanosecond}, {{LinkId{0}, 4, at(600), at(9000)}});
  run.add(0, over({{0, 1000}}));
  run.add(400, [&](SimTime now) { run.fabric.hold(0, now); });
  run.add(1000, [&](SimTime now) { run.fabric.go_on(0, now); });
  EXPECT_EQ(run.ends(), (Traffic::Ends{{0, 3400}}));
}

// Two groups of 1000 bytes and one of 500, a third of the link each: 500 by 1500, then the two have
// 1000 bytes left and the link to themselves.
TEST(Fabric, ATransferOfTwoGroupsHasTwoShares) {
  Traffic run({kByteANanosecond});
  Transfer two = over({{0, 2000}});
  two.shares = 2;
  run.add(0, two);
  run.add(0, over({{0, 500}}));
  EXPECT_EQ(run.ends(), (Traffic::Ends{{1, 1500}, {0, 2500}}));
}

TEST(Fabric, AListenerMayStartTheNextTransfer) {
  Traffic run({kByteANanosecond});
  const Transfer next = over({{0, 100}});
  run.then = [&](std::uint64_t cookie, SimTime now) {
    if (cookie < 2) run.fabric.start(next, run, cookie + 10, now);
  };
  run.add(0, over({{0, 1000}}));
  run.add(0, over({{0, 1000}}));
  EXPECT_EQ(run.ends(), (Traffic::Ends{{0, 2000}, {1, 2000}, {10, 2200}, {11, 2200}}));
}

// No link may carry more than its capacity: with all transfers started at 0, the last end is no
// earlier than any link's bytes over its capacity; and twice the same gives the same.
TEST(Fabric, NoLinkCarriesMoreThanItsCapacity) {
  const auto run_all = [](std::uint64_t seed, std::vector<double>& bytes) {
    Traffic run(LinkTable(8, kByteANanosecond));
    std::uint64_t state = seed;
    const auto next = [&state](std::uint64_t below) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return (state >> 33U) % below;
    };
    for (int i = 0; i < 60; ++i) {
      Loads loads;
      for (std::uint32_t link = 0; link < 8; ++link) {
        if (next(3) > 0) continue;
        loads.emplace_back(link, static_cast<double>(1000 + next(9000)));
        bytes[link] += loads.back().second;
      }
      run.add(0, over(loads, 0, static_cast<std::int64_t>(next(20000))));
    }
    return run.ends();
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> bytes(8, 0.0);
    std::vector<double> again(8, 0.0);
    const auto ends = run_all(seed, bytes);
    EXPECT_EQ(ends, run_all(seed, again));
    ASSERT_EQ(ends.size(), 60U);
    for (const double of_link : bytes) EXPECT_GE(static_cast<double>(ends.back().second), of_link);
  }
}

/// A rank that writes down what it is told.
class Peer final : public Participant {
 public:
  void on_all_arrived(std::uint64_t, SimTime now) override { arrived.push_back(to_ns(now)); }
  void on_transfer_finished(std::uint64_t, SimTime now) override { carried.push_back(to_ns(now)); }
  std::vector<std::int64_t> arrived;
  std::vector<std::int64_t> carried;
};

TEST(Fabric, CarriesACollectiveFromItsLastArrivalOn) {
  engine::Engine engine;
  const Transfer transfer = over({{0, 1000}}, 50);
  Rendezvous meeting(engine, {{2, &transfer}, {2, nullptr}}, {kByteANanosecond});
  Peer a;
  Peer b;
  meeting.arrive(0, a, 1, at(0));
  engine.run_until();
  EXPECT_EQ(meeting.waiting(), 1U);
  meeting.arrive(0, b, 2, at(0)), meeting.arrive(1, a, 3, at(0)), meeting.arrive(1, b, 4, at(0));
  EXPECT_EQ(a.arrived, (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(a.carried.empty());
  engine.run_until();
  EXPECT_EQ(a.carried, (std::vector<std::int64_t>{1050}));
  EXPECT_EQ(b.carried, (std::vector<std::int64_t>{1050}));
  EXPECT_EQ(meeting.waiting(), 0U);
}

// Where ranks meet.

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
  meeting.arrive(0, b, 11, at(10)), meeting.arrive(0, a, 12, at(20));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(meeting.waiting(), 1U);
  meeting.arrive(0, a, 13, at(30));
  EXPECT_EQ(told, (Rank::Told{{11, 30}, {12, 30}, {13, 30}}));
  EXPECT_EQ(meeting.waiting(), 0U);
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
  meeting.arrive(0, a, 1, at(8)), meeting.arrive(0, b, 2, at(9));
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
  meeting.arrive(0, a, 1, at(1)), meeting.expect(0, at(30)), meeting.expect(1, at(50));
  meeting.expect(0, at(20)), meeting.expect(1, at(10)), meeting.expect(2, at(5));
  EXPECT_EQ(meeting.next_completion(), at(30));
  meeting.expect(1, at(60));  // another look
  meeting.expect(1, at(70));
  EXPECT_EQ(meeting.next_completion(), at(70));
  EXPECT_EQ(meeting.next_completion(), SimTime::max());
}

}  // namespace
}  // namespace bubblesim::network

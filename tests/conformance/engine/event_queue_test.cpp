// What every event queue must do, checked against an ordered set. A new queue joins by being added
// to `Queues`.
//
// Peers have been seen to lose the order after a removal (docs of the ns-3 heap scheduler's
// Remove), so removal, and order after removal, get cases of their own.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/engine/event_queue.hpp"

namespace bubblesim::engine {
namespace {

SimTime at(std::int64_t ns) { return kSimStart + Duration{ns}; }

/// The obvious queue: one ordered set of keys.
class ReferenceQueue {
 public:
  explicit ReferenceQueue(Ties ties = Ties::kByScheduling) : ties_(ties) {}
  EntityId add() {
    keys_.emplace_back();
    return EntityId{static_cast<std::uint32_t>(keys_.size() - 1)};
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void set(EntityId id, SimTime time, Phase phase) {
    clear(id);
    if (time == SimTime::max()) return;
    const std::uint64_t sequence = ties_ == Ties::kByScheduling ? sequence_++ : id.value;
    const EventKey key{time, phase, sequence};
    keys_[id.index()] = key;
    order_.emplace(key, id);
  }
  void clear(EntityId id) {
    if (pending(id)) order_.erase({*keys_[id.index()], id});
    keys_[id.index()].reset();
  }
  [[nodiscard]] bool pending(EntityId id) const { return keys_[id.index()].has_value(); }
  [[nodiscard]] SimTime time(EntityId id) const {
    return pending(id) ? keys_[id.index()]->time : SimTime::max();
  }
  [[nodiscard]] Phase phase(EntityId id) const { return keys_[id.index()]->phase; }
  [[nodiscard]] std::optional<EntityId> first() const {
    if (order_.empty()) return std::nullopt;
    return order_.begin()->second;
  }
  [[nodiscard]] SimTime first_time() const { return order_.begin()->first.time; }

 private:
  Ties ties_;
  std::uint64_t sequence_ = 0;
  std::vector<std::optional<EventKey>> keys_;
  std::set<std::pair<EventKey, EntityId>> order_;
};

template <class Queue>
class AnyEventQueue : public testing::Test {
 protected:
  std::vector<EntityId> add(std::size_t count) {
    std::vector<EntityId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(queue_.add());
    return ids;
  }
  std::vector<std::uint32_t> drain() {
    std::vector<std::uint32_t> order;
    while (const auto first = queue_.first()) {
      EXPECT_EQ(queue_.first_time(), queue_.time(*first));
      order.push_back(first->value);
      queue_.clear(*first);
    }
    return order;
  }
  Queue queue_;
};

using Queues = testing::Types<EventQueue, ReferenceQueue>;
TYPED_TEST_SUITE(AnyEventQueue, Queues);

using Order = std::vector<std::uint32_t>;

TYPED_TEST(AnyEventQueue, IsEmptyAtFirst) {
  EXPECT_FALSE(this->queue_.first());
  const EntityId only = this->queue_.add();
  EXPECT_FALSE(this->queue_.pending(only));
  EXPECT_FALSE(this->queue_.first());
}

TYPED_TEST(AnyEventQueue, GivesOneEntityBack) {
  const EntityId only = this->queue_.add();
  this->queue_.set(only, at(5), Phase::kPolicy);
  EXPECT_EQ(this->queue_.first(), only);
  EXPECT_EQ(this->queue_.time(only), at(5));
  EXPECT_EQ(this->queue_.phase(only), Phase::kPolicy);
  EXPECT_EQ(this->drain(), Order{0});
}

TYPED_TEST(AnyEventQueue, OrdersByTimeThenPhaseThenScheduling) {
  const auto ids = this->add(5);
  this->queue_.set(ids[3], at(5), Phase::kHost);
  this->queue_.set(ids[2], at(5), Phase::kHost);
  this->queue_.set(ids[1], at(5), Phase::kPolicy);
  this->queue_.set(ids[0], at(7), Phase::kHost);
  this->queue_.set(ids[4], at(5), Phase::kCompletion);
  EXPECT_EQ(this->drain(), (Order{4, 3, 2, 1, 0}));
}

TYPED_TEST(AnyEventQueue, KeepsTiesInScheduleOrder) {
  const auto ids = this->add(100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    this->queue_.set(ids[(i * 37) % 100], at(5), Phase::kHost);
  }
  Order expected;
  for (std::uint32_t i = 0; i < 100; ++i) expected.push_back((i * 37) % 100);
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, KeepsTiesInTheOrderOfEntitiesIfAsked) {
  this->queue_ = TypeParam(Ties::kByEntity);
  const auto ids = this->add(100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    this->queue_.set(ids[(i * 37) % 100], at(5), Phase::kHost);
  }
  Order expected(100);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, MovesAKeyEitherWay) {
  const auto ids = this->add(3);
  for (std::uint32_t i = 0; i < 3; ++i) this->queue_.set(ids[i], at(10 * (i + 1)), Phase::kHost);
  this->queue_.set(ids[0], at(25), Phase::kHost);  // later
  this->queue_.set(ids[2], at(5), Phase::kHost);   // earlier
  EXPECT_EQ(this->drain(), (Order{2, 1, 0}));
}

// The tree's keys hold times for some minutes; two thirds of a century must do too, and back.
TYPED_TEST(AnyEventQueue, OrdersTimesFarApart) {
  const auto ids = this->add(6);
  const std::int64_t far = std::int64_t{1} << 61U;
  this->queue_.set(ids[0], at(far + 1), Phase::kHost);
  this->queue_.set(ids[1], at(far), Phase::kPolicy);
  this->queue_.set(ids[2], at(far), Phase::kHost);
  EXPECT_EQ(this->queue_.first(), ids[2]);
  EXPECT_EQ(this->queue_.time(ids[0]), at(far + 1));
  this->queue_.set(ids[3], at(3), Phase::kHost);  // before what was the first
  this->queue_.set(ids[4], at(far / 2), Phase::kHost);
  this->queue_.set(ids[5], at(far), Phase::kHost);
  EXPECT_EQ(this->drain(), (Order{3, 4, 2, 5, 1, 0}));
}

TYPED_TEST(AnyEventQueue, TheEndOfTimeIsNoEvent) {
  const auto ids = this->add(2);
  this->queue_.set(ids[0], SimTime::max(), Phase::kHost);
  EXPECT_FALSE(this->queue_.pending(ids[0]));
  EXPECT_FALSE(this->queue_.first());
}

TYPED_TEST(AnyEventQueue, ForgetsFarTimesThatWereTakenBack) {
  const auto ids = this->add(3);
  const std::int64_t far = std::int64_t{1} << 61U;
  this->queue_.set(ids[0], at(far / 4), Phase::kHost);
  this->queue_.set(ids[1], at(far + 2), Phase::kHost);
  this->queue_.set(ids[2], at(far + 1), Phase::kHost);
  this->queue_.clear(ids[0]);
  EXPECT_EQ(this->drain(), (Order{2, 1}));
}

// Two million schedulings: more than the tree has tickets at a time.
TYPED_TEST(AnyEventQueue, TiesKeepTheirOrderHoweverLongOneWaits) {
  const auto ids = this->add(3);
  this->queue_.set(ids[2], at(9), Phase::kHost);
  for (int i = 0; i < 2'000'000; ++i) this->queue_.set(ids[1], at(9), Phase::kHost);
  this->queue_.set(ids[0], at(9), Phase::kHost);
  EXPECT_EQ(this->drain(), (Order{2, 1, 0}));
}

TYPED_TEST(AnyEventQueue, KeepsItsOrderAfterRemovals) {
  const auto ids = this->add(64);
  for (std::uint32_t i = 0; i < 64; ++i) this->queue_.set(ids[i], at((i * 29) % 64), Phase::kHost);
  Order expected;
  for (std::uint32_t time = 0; time < 64; ++time) {
    const std::uint32_t i = (time * 53) % 64;  // 29 * 53 = 1 mod 64
    if (i % 3 == 0) {
      this->queue_.clear(ids[i]);
    } else {
      expected.push_back(i);
    }
  }
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, RemovingWhatIsNotThereDoesNothing) {
  const auto ids = this->add(2);
  this->queue_.set(ids[0], at(1), Phase::kHost);
  this->queue_.clear(ids[1]);
  EXPECT_EQ(this->queue_.first(), ids[0]);
}

TYPED_TEST(AnyEventQueue, GrowsWithoutForgetting) {
  Order expected;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const EntityId id = this->queue_.add();
    this->queue_.set(id, at(2000 - i), Phase::kHost);
    EXPECT_EQ(this->queue_.first(), id);
    expected.insert(expected.begin(), i);
  }
  EXPECT_EQ(this->queue_.size(), 1000u);
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, AgreesWithAnOrderedSetOnRandomOperations) {
  ReferenceQueue reference;
  RandomStream random(7, "event queue conformance");
  for (int step = 0; step < 30'000; ++step) {
    const double what = random.uniform();
    const auto any = [&] {
      const double size = static_cast<double>(reference.size());
      return EntityId{static_cast<std::uint32_t>(random.uniform() * size)};
    };
    if (reference.size() == 0 || (what < 0.01 && reference.size() < 200)) {
      ASSERT_EQ(this->queue_.add(), reference.add());
    } else if (what < 0.6) {
      const EntityId id = any();
      // Few distinct times, so that many tie; a few of them far ahead.
      const auto phase = static_cast<Phase>(static_cast<int>(random.uniform() * 6));
      const Duration unit{random.uniform() < 0.1 ? std::int64_t{1} << 50U : 1};
      const SimTime time = kSimStart + static_cast<std::int64_t>(random.uniform() * 50) * unit;
      this->queue_.set(id, time, phase);
      reference.set(id, time, phase);
    } else if (what < 0.75) {
      const EntityId id = any();
      this->queue_.clear(id);
      reference.clear(id);
    } else if (const auto first = reference.first()) {
      this->queue_.clear(*first);
      reference.clear(*first);
    }
    ASSERT_EQ(this->queue_.first(), reference.first()) << "after step " << step;
  }
}

}  // namespace
}  // namespace bubblesim::engine

// What every event queue must do, checked against an ordered set. A new queue joins by being added
// to `Queues`.
//
// Peers have been seen to lose the order after a removal (docs of the ns-3 heap scheduler's
// Remove), so removal, and order after removal, get cases of their own.
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/engine/event_queue.hpp"

namespace bubblesim::engine {
namespace {

EventKey key(std::int64_t ns, std::uint64_t sequence, Phase phase = Phase::kHost) {
  return {SimTime{Duration{ns}}, phase, sequence};
}

/// The obvious queue: one ordered set of keys.
class ReferenceQueue {
 public:
  EntityId add() {
    keys_.emplace_back();
    return EntityId{static_cast<std::uint32_t>(keys_.size() - 1)};
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void set(EntityId id, const EventKey& at) {
    clear(id);
    keys_[id.index()] = at;
    order_.emplace(at, id);
  }
  void clear(EntityId id) {
    if (pending(id)) order_.erase({*keys_[id.index()], id});
    keys_[id.index()].reset();
  }
  [[nodiscard]] bool pending(EntityId id) const { return keys_[id.index()].has_value(); }
  [[nodiscard]] const EventKey& key(EntityId id) const { return *keys_[id.index()]; }
  [[nodiscard]] std::optional<EntityId> first() const {
    if (order_.empty()) return std::nullopt;
    return order_.begin()->second;
  }

 private:
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
  this->queue_.set(only, key(5, 0));
  EXPECT_EQ(this->queue_.first(), only);
  EXPECT_EQ(this->queue_.key(only), key(5, 0));
  EXPECT_EQ(this->drain(), Order{0});
}

TYPED_TEST(AnyEventQueue, OrdersByTimeThenPhaseThenSequence) {
  const auto ids = this->add(5);
  this->queue_.set(ids[0], key(7, 4));
  this->queue_.set(ids[1], key(5, 3, Phase::kPolicy));
  this->queue_.set(ids[2], key(5, 2, Phase::kHost));
  this->queue_.set(ids[3], key(5, 1, Phase::kHost));
  this->queue_.set(ids[4], key(5, 9, Phase::kCompletion));
  EXPECT_EQ(this->drain(), (Order{4, 3, 2, 1, 0}));
}

TYPED_TEST(AnyEventQueue, KeepsTiesInScheduleOrder) {
  const auto ids = this->add(100);
  for (std::uint32_t i = 0; i < 100; ++i) this->queue_.set(ids[(i * 37) % 100], key(5, i));
  Order expected;
  for (std::uint32_t i = 0; i < 100; ++i) expected.push_back((i * 37) % 100);
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, MovesAKeyEitherWay) {
  const auto ids = this->add(3);
  for (std::uint32_t i = 0; i < 3; ++i) this->queue_.set(ids[i], key(10 * (i + 1), i));
  this->queue_.set(ids[0], key(25, 3));  // later
  this->queue_.set(ids[2], key(5, 4));   // earlier
  EXPECT_EQ(this->drain(), (Order{2, 1, 0}));
}

TYPED_TEST(AnyEventQueue, KeepsItsOrderAfterRemovals) {
  const auto ids = this->add(64);
  for (std::uint32_t i = 0; i < 64; ++i) this->queue_.set(ids[i], key((i * 29) % 64, i));
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
  this->queue_.set(ids[0], key(1, 0));
  this->queue_.clear(ids[1]);
  EXPECT_EQ(this->queue_.first(), ids[0]);
}

TYPED_TEST(AnyEventQueue, GrowsWithoutForgetting) {
  Order expected;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const EntityId id = this->queue_.add();
    this->queue_.set(id, key(2000 - i, i));
    EXPECT_EQ(this->queue_.first(), id);
    expected.insert(expected.begin(), i);
  }
  EXPECT_EQ(this->queue_.size(), 1000u);
  EXPECT_EQ(this->drain(), expected);
}

TYPED_TEST(AnyEventQueue, AgreesWithAnOrderedSetOnRandomOperations) {
  ReferenceQueue reference;
  RandomStream random(7, "event queue conformance");
  std::uint64_t sequence = 0;
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
      // Few distinct times, so that many tie.
      const auto phase = static_cast<Phase>(static_cast<int>(random.uniform() * 6));
      const EventKey at = key(static_cast<std::int64_t>(random.uniform() * 50), sequence++, phase);
      this->queue_.set(id, at);
      reference.set(id, at);
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

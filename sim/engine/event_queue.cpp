#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace bubblesim::engine {
namespace {

constexpr unsigned kPhaseBits = 3;
// At least so many tickets, and eight times as many as entities: drawing them anew, O(entities log
// entities), is rare.
constexpr unsigned kTicketBits = 20;
constexpr unsigned kTicketBitsAnEntity = 3;

}  // namespace

EntityId EventQueue::add() {
  if (size() == kMostEntities) {
    throw std::length_error("an event queue holds at most 4,194,304 entities");
  }
  if (size() == leaves_ || size() == 0) grow();
  late_times_.push_back(SimTime::max());
  return EntityId{static_cast<std::uint32_t>(size() - 1)};
}

// For a key of this time.
void EventQueue::make_room(SimTime time) {
  if (time < base_) rebase(time);
  if (ticket_ == tickets_end_) draw_tickets_anew();
}

// Nothing that is pending is early: the base follows time.
void EventQueue::follow() const {
  SimTime base = SimTime::max();
  for (std::uint32_t i = 0; i < size(); ++i) base = std::min(base, time(EntityId{i}));
  rebase(base);
}

void EventQueue::rebase(SimTime base) const {
  for (std::uint32_t i = 0; i < size(); ++i) {
    Key& own = tree_[leaves_ + i];
    if (own == kNone) continue;
    const Key rest = own & ((Key{1} << time_shift_) - 1);
    own = pack(EntityId{i}, time_of(EntityId{i}, own), base, rest);
  }
  base_ = base;
  play_all();
}

// Gives what is pending the first tickets, in the order of those that it has.
void EventQueue::draw_tickets_anew() {
  std::vector<std::pair<Key, std::size_t>> pending;
  for (std::size_t leaf = leaves_; leaf < tree_.size(); ++leaf) {
    if (tree_[leaf] != kNone) pending.emplace_back(ticket_of(tree_[leaf]), leaf);
  }
  std::sort(pending.begin(), pending.end());
  ticket_ = 0;
  for (const auto& [ticket, leaf] : pending) {
    tree_[leaf] += ticket_ - ticket;
    ticket_ += ticket_step_;
  }
  play_all();
}

// Doubles the leaves, and lays out keys anew.
void EventQueue::grow() {
  EventQueue larger(ties_);
  larger.leaves_ = 2 * leaves_;
  larger.tree_.assign(2 * larger.leaves_, kNone);
  larger.late_times_ = late_times_;
  larger.base_ = base_;
  larger.lay_out_keys();
  for (std::uint32_t i = 0; i < size(); ++i) {
    const EntityId id{i};
    if (!pending(id)) continue;
    const Key rest = Key{static_cast<std::uint8_t>(phase(id))} << larger.phase_shift_ |
                     2 * ticket_of(key(id)) | i;
    larger.tree_[larger.leaves_ + i] = larger.pack(id, time(id), base_, rest);
  }
  larger.ticket_ = 2 * ticket_;
  larger.play_all();
  *this = std::move(larger);
}

// From the highest bits on: time, phase, ticket, entity. In keys of twice as many entities a ticket
// is twice as large a number.
void EventQueue::lay_out_keys() {
  const auto entity_bits = static_cast<unsigned>(std::countr_zero(leaves_));
  phase_shift_ = entity_bits + std::max(kTicketBits, entity_bits + kTicketBitsAnEntity);
  time_shift_ = phase_shift_ + kPhaseBits;
  late_ = kNone << time_shift_;
  late_after_ = late_ >> time_shift_;
  tickets_end_ = Key{1} << phase_shift_;
  ticket_step_ = ties_ == Ties::kByScheduling ? leaves_ : 0;
}

void EventQueue::play_all() const {
  for (std::size_t node = leaves_ - 1; node >= kRoot; --node) {
    tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
  }
}

}  // namespace bubblesim::engine

#include "sim/network/fabric.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::network {
namespace {

constexpr double kNanosecond = 1e-9;
// Links that fill at levels this close, relative, fill together: equal ones differ by rounding.
constexpr double kTie = 1e-12;
// Bytes a second: rounding must not leave a transfer without any speed.
constexpr double kSlowest = 1.0;

SimTime later(SimTime from, double seconds) {
  // A thousandth of a nanosecond is rounding of the division, not time.
  return from + Duration{static_cast<std::int64_t>(std::ceil(seconds / kNanosecond - 1e-3))};
}

}  // namespace

Fabric::Fabric(engine::Engine& engine, const LinkTable& links, const std::vector<SlowLink>& slow)
    : engine_(engine), entity_(engine.add_entity(*this, engine::Phase::kCompletion)) {
  links_.reserve(links.size());
  for (const BytesPerSecond capacity : links) links_.push_back({.capacity = capacity.value});
  for (const SlowLink& fault : slow) {
    const double capacity = links[fault.link.index()].value;
    changes_.push_back({fault.until, fault.link, capacity});
  }
  // Where a fault follows another at once, the end of the first comes before.
  for (const SlowLink& fault : slow) {
    changes_.push_back({fault.from, fault.link, links[fault.link.index()].value / fault.slowdown});
  }
  std::ranges::stable_sort(changes_, {}, &CapacityChange::at);
}

FlowId Fabric::start(const Transfer& transfer, FlowListener& listener, std::uint64_t cookie,
                     SimTime now) {
  Flow flow{};
  flow.transfer = &transfer;
  flow.listener = &listener;
  flow.cookie = cookie;
  flow.sequence = next_sequence_++;
  for (const LinkLoad& load : transfer.loads) {
    BUBBLESIM_DCHECK(load.link.index() < links_.size(), "a transfer loads a link of the table");
    flow.heaviest = std::max(flow.heaviest, load.bytes);
  }
  flow.heaviest /= transfer.shares;
  flow.left = flow.heaviest;
  flow.limit = transfer.least > Duration{0} ? flow.heaviest / to_seconds(transfer.least)
                                            : std::numeric_limits<double>::infinity();
  if (active() == 0) change_capacities(now);  // they may have changed without flows
  const std::uint32_t slot = take_slot();
  flows_[slot] = flow;
  set_due(slot, now + transfer.latency);
  plan_next();
  return slot;
}

// Bytes that move are left as they are; latencies, and times without bytes, go on where they were.
void Fabric::hold(FlowId slot, SimTime now) {
  Flow& flow = flows_[slot];
  if (flow.moving && flow.due <= now) return;
  flow.wait = std::max(flow.due - now, Duration{});
  flow.due = SimTime::max();
  if (flow.moving && !flow.transfer->loads.empty()) {
    flow.left = std::max(0.0, flow.left - flow.speed * to_seconds(now - flow.since));
    flow.speed = 0;
    begin_round();
    leave_links(slot);
    spread(flow);
    share(now);
  }
  plan_next();
}

void Fabric::go_on(FlowId slot, SimTime now) {
  Flow& flow = flows_[slot];
  if (!flow.wait) return;
  const Duration wait = *std::exchange(flow.wait, std::nullopt);
  if (flow.moving && !flow.transfer->loads.empty()) {
    flow.since = now;
    begin_round();
    use_links(slot);
    gather(slot);
    change_capacities(now);
    share(now);
  } else {
    set_due(slot, now + wait);
  }
  plan_next();
}

void Fabric::begin_round() {
  ++round_;
  affected_.clear();
  used_.clear();
}

std::uint32_t Fabric::take_slot() {
  if (free_.empty()) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void Fabric::set_due(std::uint32_t slot, SimTime at) {
  flows_[slot].due = at;
  heap_.push_back({at, flows_[slot].sequence, slot});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool Fabric::is_stale(const Due& due) const {
  const Flow& flow = flows_[due.slot];
  return flow.sequence != due.sequence || flow.due != due.at;
}

void Fabric::on_event(SimTime now) {
  begin_round();
  collect_due(now);
  for (const std::uint32_t slot : due_now_) {
    if (!flows_[slot].moving) begin_moving(slot, now);
  }
  for (const std::uint32_t slot : due_now_) {
    if (flows_[slot].moving && flows_[slot].due == now) end(slot);
  }
  change_capacities(now);
  share(now);
  plan_next();
  // A listener may start transfers, but only a later event ends any.
  for (const Flow& flow : ended_) flow.listener->on_flow_finished(flow.cookie, now);
  ended_.clear();
}

// In the order of starts: that is the heap's within an instant.
void Fabric::collect_due(SimTime now) {
  due_now_.clear();
  while (!heap_.empty() && heap_.front().at <= now) {
    const Due due = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    if (is_stale(due)) continue;
    if (due_now_.empty() || due_now_.back() != due.slot) due_now_.push_back(due.slot);
  }
}

void Fabric::change_capacities(SimTime now) {
  for (; next_change_ < changes_.size() && changes_[next_change_].at <= now; ++next_change_) {
    Link& link = links_[changes_[next_change_].link.index()];
    link.capacity = changes_[next_change_].capacity;
    for (const std::uint32_t user : link.users) gather(user);
  }
}

void Fabric::begin_moving(std::uint32_t slot, SimTime now) {
  Flow& flow = flows_[slot];
  flow.moving = true;
  flow.since = now;
  if (flow.transfer->loads.empty()) {
    if (flow.transfer->least > Duration{0}) set_due(slot, now + flow.transfer->least);
    return;
  }
  flow.due = SimTime::max();
  use_links(slot);
  gather(slot);
}

void Fabric::use_links(std::uint32_t slot) {
  for (const LinkLoad& load : flows_[slot].transfer->loads) {
    links_[load.link.index()].users.push_back(slot);
  }
}

void Fabric::leave_links(std::uint32_t slot) {
  for (const LinkLoad& load : flows_[slot].transfer->loads) {
    auto& users = links_[load.link.index()].users;
    *std::find(users.begin(), users.end(), slot) = users.back();
    users.pop_back();
  }
}

void Fabric::end(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  leave_links(slot);
  ended_.push_back(flow);
  flow.sequence = 0;  // no entry of the heap is this slot's any more
  free_.push_back(slot);
}

void Fabric::gather(std::uint32_t slot) {
  if (flows_[slot].gathered == round_) return;
  flows_[slot].gathered = round_;
  affected_.push_back(slot);
}

// Gathers the users of a transfer's links.
void Fabric::spread(const Flow& flow) {
  for (const LinkLoad& load : flow.transfer->loads) {
    Link& link = links_[load.link.index()];
    if (link.spread == round_) continue;
    link.spread = round_;
    for (const std::uint32_t user : link.users) gather(user);
    used_.push_back(load.link.value);
  }
}

// Finds the speeds of transfers that began, and of all that share links with a changed one,
// directly or through others.
void Fabric::share(SimTime now) {
  for (const Flow& flow : ended_) spread(flow);
  for (std::size_t i = 0; i < affected_.size(); ++i) spread(flows_[affected_[i]]);
  if (affected_.empty()) return;
  for (const std::uint32_t index : used_) {
    Link& link = links_[index];
    link.free = link.capacity;
    link.demand = 0;
    link.open = 0;
  }
  for (const std::uint32_t slot : affected_) {
    Flow& flow = flows_[slot];
    flow.frozen = false;
    for (const LinkLoad& load : flow.transfer->loads) {
      links_[load.link.index()].demand += load.bytes / flow.heaviest;
      ++links_[load.link.index()].open;
    }
  }
  fill();
  for (const std::uint32_t slot : affected_) settle(slot, now);
}

// Raises all speeds together; freezes who can go no faster. Ends: each round freezes at least the
// transfer or the link's users that set the level.
void Fabric::fill() {
  for (std::size_t left = affected_.size(); left > 0;) {
    double level = std::numeric_limits<double>::infinity();
    for (const std::uint32_t index : used_) {
      const Link& link = links_[index];
      if (link.open > 0) level = std::min(level, link.free / link.demand);
    }
    for (const std::uint32_t index : affected_) {
      if (!flows_[index].frozen) level = std::min(level, flows_[index].limit);
    }
    level = std::max(level, kSlowest);
    std::size_t frozen = 0;
    for (const std::uint32_t index : affected_) {
      Flow& flow = flows_[index];
      flow.at_limit = !flow.frozen && (flow.limit <= level || on_full_link(flow, level));
    }
    for (const std::uint32_t index : affected_) {
      if (!flows_[index].at_limit) continue;
      freeze(flows_[index], level);
      ++frozen;
    }
    BUBBLESIM_CHECK(frozen > 0, "each round of filling settles a transfer");
    left -= frozen;
  }
}

bool Fabric::on_full_link(const Flow& flow, double level) const {
  const auto& loads = flow.transfer->loads;
  return std::any_of(loads.begin(), loads.end(), [&](const LinkLoad& load) {
    const Link& link = links_[load.link.index()];
    return link.free / link.demand <= level * (1 + kTie);
  });
}

void Fabric::freeze(Flow& flow, double speed) {
  flow.frozen = true;
  flow.at_limit = false;
  flow.new_speed = speed;
  for (const LinkLoad& load : flow.transfer->loads) {
    Link& link = links_[load.link.index()];
    const double share = load.bytes / flow.heaviest;
    link.free = std::max(0.0, link.free - speed * share);
    link.demand -= share;
    --link.open;
  }
}

// A transfer whose speed stays keeps its end to the bit.
void Fabric::settle(std::uint32_t slot, SimTime now) {
  Flow& flow = flows_[slot];
  if (flow.new_speed == flow.speed) return;
  flow.left = std::max(0.0, flow.left - flow.speed * to_seconds(now - flow.since));
  flow.since = now;
  flow.speed = flow.new_speed;
  set_due(slot, later(now, flow.left / flow.speed));
}

void Fabric::plan_next() {
  while (!heap_.empty() && is_stale(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
  if (heap_.empty()) {
    engine_.cancel(entity_);
    return;
  }
  SimTime next = heap_.front().at;
  if (next_change_ < changes_.size()) next = std::min(next, changes_[next_change_].at);
  if (engine_.due(entity_) != next) engine_.schedule(entity_, next);
}

}  // namespace bubblesim::network

#include "sim/network/fabric.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

Fabric::Fabric(engine::Engine& engine, const LinkTable& links)
    : engine_(engine), entity_(engine.add_entity(*this, engine::Phase::kCompletion)) {
  links_.reserve(links.size());
  for (const BytesPerSecond capacity : links) links_.push_back({.capacity = capacity.value});
}

void Fabric::start(const Transfer& transfer, FlowListener& listener, std::uint64_t cookie,
                   SimTime now) {
  Flow flow{};
  flow.transfer = &transfer;
  flow.listener = &listener;
  flow.cookie = cookie;
  for (const LinkLoad& load : transfer.loads) {
    BUBBLESIM_DCHECK(load.link.index() < links_.size(), "a transfer loads a link of the table");
    flow.heaviest = std::max(flow.heaviest, load.bytes);
  }
  flow.left = flow.heaviest;
  flow.limit = transfer.least > Duration{0} ? flow.heaviest / to_seconds(transfer.least)
                                            : std::numeric_limits<double>::infinity();
  flow.due = now + transfer.latency;
  flow.since = now;
  flows_.push_back(flow);
  plan_next();
}

void Fabric::on_event(SimTime now) {
  ++round_;
  changed_links_shared_ = false;
  for (Flow& flow : flows_) {
    if (!flow.moving && flow.due == now) begin_moving(flow, now);
  }
  for (Flow& flow : flows_) {
    if (flow.due == now) end(flow);
  }
  std::erase_if(flows_, [now](const Flow& flow) { return flow.due == now; });
  share(now);
  plan_next();
  // A listener may start transfers, but only a later event ends any.
  for (const Flow& flow : ended_) flow.listener->on_flow_finished(flow.cookie, now);
  ended_.clear();
}

void Fabric::begin_moving(Flow& flow, SimTime now) {
  flow.moving = true;
  flow.since = now;
  if (flow.transfer->loads.empty()) {
    flow.due = now + flow.transfer->least;
    return;
  }
  flow.due = SimTime::max();
  flow.affected = true;
  for (const LinkLoad& load : flow.transfer->loads) {
    Link& link = links_[load.link.index()];
    link.mark = round_;
    if (link.users++ > 0) changed_links_shared_ = true;
  }
}

void Fabric::end(Flow& flow) {
  for (const LinkLoad& load : flow.transfer->loads) {
    Link& link = links_[load.link.index()];
    link.mark = round_;
    if (--link.users > 0) changed_links_shared_ = true;
  }
  ended_.push_back(flow);
}

// Finds the speeds of transfers that began, and of all that share links with a changed one,
// directly or through others.
void Fabric::share(SimTime now) {
  gather_affected();
  if (affected_.empty()) return;
  used_.clear();
  for (const std::size_t index : affected_) {
    Flow& flow = flows_[index];
    flow.frozen = false;
    for (const LinkLoad& load : flow.transfer->loads) open_link(load, flow);
  }
  fill();
  for (const std::size_t index : affected_) settle(flows_[index], now);
}

void Fabric::gather_affected() {
  affected_.clear();
  // Each pass may mark links that earlier transfers use, so passes go on until none is found.
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = flows_[i];
      if (!flow.moving || flow.transfer->loads.empty() || flow.gathered == round_) continue;
      if (!flow.affected && !(changed_links_shared_ && touches_marked(flow))) continue;
      flow.affected = false;
      flow.gathered = round_;
      affected_.push_back(i);
      for (const LinkLoad& load : flow.transfer->loads) links_[load.link.index()].mark = round_;
      found = changed_links_shared_;
    }
  }
}

bool Fabric::touches_marked(const Flow& flow) const {
  const auto& loads = flow.transfer->loads;
  return std::any_of(loads.begin(), loads.end(), [this](const LinkLoad& load) {
    return links_[load.link.index()].mark == round_;
  });
}

void Fabric::open_link(const LinkLoad& load, const Flow& flow) {
  Link& link = links_[load.link.index()];
  if (link.filled != round_) {
    link.filled = round_;
    link.free = link.capacity;
    link.demand = 0;
    link.open = 0;
    used_.push_back(load.link.value);
  }
  link.demand += load.bytes / flow.heaviest;
  ++link.open;
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
    for (const std::size_t index : affected_) {
      if (!flows_[index].frozen) level = std::min(level, flows_[index].limit);
    }
    level = std::max(level, kSlowest);
    std::size_t frozen = 0;
    for (const std::size_t index : affected_) {
      Flow& flow = flows_[index];
      flow.at_limit = !flow.frozen && (flow.limit <= level || on_full_link(flow, level));
    }
    for (const std::size_t index : affected_) {
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
void Fabric::settle(Flow& flow, SimTime now) {
  if (flow.new_speed == flow.speed) return;
  flow.left = std::max(0.0, flow.left - flow.speed * to_seconds(now - flow.since));
  flow.since = now;
  flow.speed = flow.new_speed;
  flow.due = later(now, flow.left / flow.speed);
}

void Fabric::plan_next() {
  SimTime next = SimTime::max();
  for (const Flow& flow : flows_) next = std::min(next, flow.due);
  if (next == SimTime::max()) {
    engine_.cancel(entity_);
  } else if (engine_.due(entity_) != next) {
    engine_.schedule(entity_, next);
  }
}

}  // namespace bubblesim::network

#include "sim/engine/conductor.hpp"

#include <algorithm>

namespace bubblesim::engine {
namespace {

// A window is worth its cost, a look at every domain, if each may expect so many events; other
// threads are worth waking for more. Measured: tests/bench/README.md, "Domains".
constexpr std::uint64_t kEventsAlone = 2;
constexpr std::uint64_t kEventsShared = 8;

constexpr Duration kShortest{1};
constexpr std::int64_t kLongestStretch = 16;

}  // namespace

Conductor::Conductor(const ConductorSetup& setup) : mode_(setup.windows), pool_(setup.threads) {
  engines_.push_back(std::make_unique<Engine>());
  engines_.front()->order_ = &order_;
  engines_.front()->tells_ = true;
  engines_.front()->floor_ = &order_.clock;
  engines_.front()->domain_ = order_.firsts.add();
}

Conductor::~Conductor() = default;

Engine& Conductor::add_domain(const ContactBound& bound) {
  engines_.push_back(std::make_unique<Engine>());
  Engine& engine = *engines_.back();
  engine.order_ = &order_;
  engine.tells_ = true;
  engine.floor_ = &order_.clock;
  engine.domain_ = order_.firsts.add();
  bounds_.push_back(&bound);
  return engine;
}

void Conductor::run_until(SimTime limit) {
  stopped_ = order_.stopped = false;
  for (const auto& engine : engines_) engine->stopped_ = false;
  const SimTime last = limit == SimTime::max() ? limit : limit + kShortest;  // exclusive
  while (!stopped_) {
    const std::optional<SimTime> next = next_due();
    if (!next) return;
    if (*next >= last) {
      order_.clock = std::max(order_.clock, limit);
      return;
    }
    if (mode_ == Windows::kNever || bounds_.size() < 2) {
      run_in_order(last);
      continue;
    }
    const Duration least = mode_ == Windows::kAlways ? kShortest : time_of(kEventsAlone);
    const SimTime until = window_end(*next, last, least);
    if (until > *next) {
      run_window(*next, until);
      stretch_ = 1;
      continue;
    }
    // The longer there was no window, the later the next look for one.
    const Duration span = std::min(least * stretch_, last - *next);
    run_in_order(*next + span);
    stretch_ = std::min(2 * stretch_, kLongestStretch);
  }
}

// How long so many events take, by those so far, evenly spread.
Duration Conductor::time_of(std::uint64_t events_a_domain) const {
  const std::uint64_t run = events();
  if (run == 0) return kShortest;
  const double wanted = static_cast<double>(events_a_domain * bounds_.size());
  const double elapsed = static_cast<double>((now() - kSimStart).count());
  const double length = elapsed / static_cast<double>(run) * wanted;
  return std::max(kShortest, Duration{static_cast<std::int64_t>(length)});
}

// The end of the window that begins at `from`; `from` if it would not be `least` long.
SimTime Conductor::window_end(SimTime from, SimTime last, Duration least) const {
  SimTime until = last;
  if (const auto first = engines_.front()->next_due()) until = std::min(until, *first);
  for (const ContactBound* bound : bounds_) {
    if (until - from < least) return from;
    until = std::min(until, bound->next_contact(from));
  }
  if (joint_ != nullptr && until - from >= least) {
    until = std::min(until, joint_->next_completion(from));
  }
  return until - from < least ? from : until;
}

// Runs what is due before `until`, each domain on its own.
void Conductor::run_window(SimTime from, SimTime until) {
  const std::uint64_t before = events();
  const auto run_domain = [this, until](std::size_t domain) {
    engines_[domain + 1]->run_before(until);
  };
  order_.in_order = false;
  if (pool_.size() > 1 && until - from >= time_of(kEventsShared)) {
    pool_.run(bounds_.size(), run_domain);
  } else {
    for (std::size_t domain = 0; domain < bounds_.size(); ++domain) run_domain(domain);
  }
  order_.in_order = true;
  ++windows_;
  events_in_windows_ += events() - before;
  for (const auto& engine : engines_) {
    engine->publish();
    stopped_ = stopped_ || engine->stopped_;
  }
  if (joint_ != nullptr) joint_->after_window();
}

// One event after another, as long as they are due before `until`.
void Conductor::run_in_order(SimTime until) {
  while (const std::optional<EntityId> next = order_.firsts.first()) {
    if (order_.firsts.first_time() >= until) return;
    run_turn(*engines_[next->index()], until);
    if (order_.stopped) {
      stopped_ = true;
      return;
    }
  }
}

// Runs the domain's events, as long as none of another domain comes first. The domain reports its
// next event only at the end: mostly one domain has many events in a row.
void Conductor::run_turn(Engine& engine, SimTime until) {
  EventQueue& firsts = order_.firsts;
  order_.clock = firsts.first_time();
  firsts.clear(engine.domain_);
  engine.tells_ = false;
  struct Done {  // also when a handler throws
    Engine& engine;
    ~Done() {
      engine.tells_ = true;
      engine.publish();
    }
  } const done{engine};
  std::optional<EntityId> next = engine.queue_.first();
  while (true) {
    engine.step(*next);
    if (order_.stopped) break;
    next = engine.queue_.first();
    if (!next) break;
    const SimTime due = engine.queue_.first_time();
    if (due >= until) break;
    if (!firsts.first_is_after(due) && other_comes_first(*engine.next_key())) break;
    order_.clock = due;
  }
}

// Asked before each event of the running domain.
bool Conductor::other_comes_first(const EventKey& next) const {
  const std::optional<EntityId> other = order_.firsts.first();
  if (!other) return false;
  return EventKey{order_.firsts.first_time(), order_.firsts.phase(*other), other->value} < next;
}

std::optional<SimTime> Conductor::next_due() const {
  const std::optional<EntityId> next = order_.firsts.first();
  if (!next) return std::nullopt;
  return order_.firsts.first_time();
}

SimTime Conductor::now() const {
  SimTime latest = order_.clock;
  for (const auto& engine : engines_) latest = std::max(latest, engine->now_);
  return latest;
}

std::uint64_t Conductor::events() const {
  std::uint64_t all = 0;
  for (const auto& engine : engines_) all += engine->events_;
  return all;
}

}  // namespace bubblesim::engine

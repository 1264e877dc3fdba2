#include "sim/gpu/context.hpp"

#include <algorithm>
#include <utility>

namespace bubblesim::gpu {

Context::Context(SharedState& shared, SimTime now)
    : shared_(shared),
      pool_(shared.spec),
      contention_(shared.spec.contention, shared.spec.sm_count, shared.spec.part),
      settled_(now) {}

// Placement order: priority, then arrival.
bool Context::ordered_before(WorkId a, WorkId b) const {
  const WorkState& first = shared_.works[a];
  const WorkState& second = shared_.works[b];
  const std::int32_t p = shared_.clients[first.work.client.index()].setup.priority;
  const std::int32_t q = shared_.clients[second.work.client.index()].setup.priority;
  return p != q ? p > q : first.arrival < second.arrival;
}

void Context::add(WorkId id) {
  changed_ = true;
  WorkState& state = shared_.works[id];
  state.sm_share = contention_.sm_share(whole_wave(state));
  state.refills = state.behind_held = false;
  std::size_t at = waiting_.size();
  while (at > 0 && ordered_before(id, waiting_[at - 1].id)) --at;
  if (at < marked_) ++marked_;
  waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(at), {id, state.work.client});
}

void Context::sort_waiting() {
  changed_ = true;
  marked_ = waiting_.size();
  std::sort(waiting_.begin(), waiting_.end(),
            [this](const Waiting& a, const Waiting& b) { return ordered_before(a.id, b.id); });
}

void Context::limit_collectives(ClientId client) {
  changed_ = true;
  const std::uint64_t sms =
      std::min(shared_.clients[client.index()].setup.sm_cap, shared_.spec.sm_count);
  const auto limit = [&](WorkId id) {
    WorkState& state = shared_.works[id];
    const Work& work = state.work;
    if (work.client != client || work.kind != program::WorkKind::kCollective) return false;
    state.waves.limit(std::min(work.profile->blocks, work.profile->residency.blocks_per_sm * sms));
    return state.waves.unplaced() == 0;
  };
  for (const Arriving& next : arriving_) limit(next.id);
  for (const Waiting& next : waiting_) {
    if (!limit(next.id)) continue;
    all_placed_ = true;
    tell_started(next.id);
    if (frozen_) shared_.note(Note::Kind::kPaused, next.id);
  }
  drop_placed();
}

double Context::all_covered() const {
  double covered = 0;
  for (const WorkId id : resident_) covered += covered_sms(shared_.works[id]);
  return covered;
}

double Context::free_sms() const {
  return std::max(0.0, shared_.spec.sm_count - all_covered());
}

bool Context::has_kernels() const {
  return std::any_of(resident_.begin(), resident_.end(), [this](WorkId id) {
    return shared_.works[id].work.kind == program::WorkKind::kKernel;
  });
}

void Context::set_leftover(double sms) {
  if (sms == leftover_) return;
  leftover_ = sms;
  rates_due_ = true;
  note_cover();
}

void Context::reset(ClientId client) {
  for (const WorkId id : resident_) {
    WorkState& state = shared_.works[id];
    if (state.work.client != client || state.work.kind != program::WorkKind::kKernel) continue;
    const program::KernelProfile& profile = *state.work.profile;
    pool_.give_all(profile.residency, state.placed);
    const bool waits = state.waves.unplaced() > 0;
    start_waves(state, shared_.spec.sm_count);
    shared_.usage.count_reset(client);
    thin_ = true;
    if (!waits) add(id);
  }
  changed_ = true;
  tidy();
}

void Context::drop_all_placed() {
  all_placed_ = false;
  const std::size_t dropped = std::erase_if(waiting_, [this](const Waiting& next) {
    return shared_.works[next.id].waves.unplaced() == 0;
  });
  if (dropped > 0) changed_ = true;  // kernels behind the dropped ones may go now
}

bool Context::has_work() const {
  if (!resident_.empty() || !arriving_.empty()) return true;
  return std::any_of(waiting_.begin(), waiting_.end(), [this](const Waiting& next) {
    return !kept_off(shared_.works[next.id]);
  });
}

void Context::thaw(SimTime now) {
  frozen_ = false;
  changed_ = true;
  settled_ = now;
  for (const WorkId id : resident_) {
    if (shared_.works[id].started) shared_.note(Note::Kind::kResumed, id);
  }
}

void Context::freeze(SimTime now) {
  settle(now);
  frozen_ = true;
  for (const WorkId id : resident_) {
    if (shared_.works[id].started) shared_.note(Note::Kind::kPaused, id);
  }
}

void Context::settle(SimTime now) {
  if (frozen_) return;
  bool any_ended = false;
  for (const WorkId id : resident_) {
    if (goes_on(shared_.works[id], now - settled_) || settle_one(id, now)) continue;
    any_ended = true;
    set_listed(shared_.works[id], false);
  }
  if (any_ended) std::erase_if(resident_, [this](WorkId id) { return !shared_.works[id].listed; });
  drop_placed();
  settled_ = now;
}

// The resident kernel that is over now, if it is the only one; null: none, several, or another
// event is due.
inline WorkState* Context::only_one_over(SimTime now) {
  if (changed_ || thin_ || frozen_) return nullptr;
  if (!arriving_.empty() && arriving_.front().at <= now) return nullptr;
  const Duration span = now - settled_;
  if (span <= Duration::zero()) return nullptr;
  WorkState* ended_work = nullptr;
  for (const WorkId id : resident_) {
    WorkState& state = shared_.works[id];
    if (state.behind_held) return nullptr;
    if (state.work.kind == program::WorkKind::kCollective) {
      if (state.end <= now) return nullptr;
    } else if (!state.waves.goes_on(span)) {
      if (ended_work != nullptr || !state.waves.ends_in(span)) return nullptr;
      ended_work = &state;
    }
  }
  return ended_work;
}

std::optional<WorkId> Context::end_one(SimTime now) {
  WorkState* const ended_work = only_one_over(now);
  if (ended_work == nullptr) return std::nullopt;
  const Duration span = now - std::exchange(settled_, now);
  WorkId ended{};
  auto kept = resident_.begin();
  for (const WorkId id : resident_) {
    WorkState& state = shared_.works[id];
    const bool ends = &state == ended_work;
    const double block_ns = ends ? state.waves.pass_last(span).block_ns : state.waves.go_on(span);
    if (block_ns > 0) shared_.usage.add_sm_ns(state.work.client, sm_ns(state, block_ns));
    if (ends) {
      ended = id;
    } else {
      *kept++ = id;
    }
  }
  resident_.pop_back();
  pool_.give_all(ended_work->work.profile->residency, ended_work->placed);
  set_listed(*ended_work, false);
  marked_ = 0;
  note_mix();
  return ended;
}

inline double Context::sm_ns(const WorkState& state, double block_ns) const {
  const double covered = block_ns / state.work.profile->residency.blocks_per_sm;
  if (counted_ == 1) return covered;
  const bool counts = leftover_ > 0 || shared_.clients[state.work.client.index()].overlaps;
  return counts ? covered * counted_ : covered;
}

// No client uses more SMs than the GPU has. Overlapping kernels of one client, as recorded, use SMs
// that other clients leave; a client limited to leftover SMs uses no more than those.
void Context::count_covered() {
  const double most = leftover_ > 0 ? leftover_ : shared_.spec.sm_count;
  const double all = all_covered();
  if (all <= most + kCoverSlack) return;
  const double own = leftover_ > 0 ? all : note_overlaps();
  if (own > 0) counted_ = std::max(0.0, most - (all - own)) / own;
}

// Marks the clients with several resident kernels that were placed as recorded; returns the number
// of SMs that these kernels cover.
double Context::note_overlaps() {
  double sms = 0;
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    const ClientId client = state.work.client;
    const bool overlaps =
        as_recorded(client) && std::any_of(resident_.begin(), resident_.end(), [&](WorkId other) {
          return other != id && shared_.works[other].work.client == client;
        });
    shared_.clients[client.index()].overlaps = overlaps;
    if (overlaps) sms += covered_sms(state);
  }
  return sms;
}

// Whether the work is a kernel none of whose blocks ends within `span`; then lets `span` pass.
inline bool Context::goes_on(WorkState& state, Duration span) {
  if (state.behind_held || state.work.kind == program::WorkKind::kCollective) return false;
  if (!state.waves.goes_on(span)) return false;
  const double block_ns = state.waves.go_on(span);
  if (block_ns > 0) {
    shared_.usage.add_sm_ns(state.work.client, sm_ns(state, block_ns));
  } else {
    thin_ = true;
  }
  return true;
}

// A kernel behind one that its client's cap holds replaces its own ending blocks only until now: in
// the instant of an event the cap may allow the held kernel, which then comes first.
inline Waves::Passed Context::pass(WorkState& state, Duration span) {
  if (!state.refills) return state.waves.pass(span, Refill::kNone);
  if (!state.behind_held || span == Duration::zero()) return state.waves.pass(span, Refill::kSelf);
  const Waves::Passed before = state.waves.pass(span - Duration{1}, Refill::kSelf);
  const Waves::Passed last = state.waves.pass(Duration{1}, Refill::kNone);
  return {before.freed + last.freed, before.block_ns + last.block_ns};
}

// After all of a kernel's blocks are placed, none follows the ending ones.
inline Waves::Passed Context::pass_placed(WorkState& state, Duration span) {
  return state.behind_held ? pass(state, span) : state.waves.pass(span, Refill::kNone);
}

double Context::unsettled_sm_ns(ClientId client, SimTime now) const {
  double sum = 0;
  // In the instant of a change rates may not be set yet, but no time has passed.
  if (frozen_ || now == settled_) return sum;
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    if (state.work.client != client) continue;
    Waves waves = state.waves;
    const Refill refill = state.refills ? Refill::kSelf : Refill::kNone;
    sum += sm_ns(state, waves.pass(now - settled_, refill).block_ns);
  }
  return sum;
}

// False once the work is finished.
inline bool Context::settle_one(WorkId id, SimTime now) {
  WorkState& state = shared_.works[id];
  const program::Residency& needs = state.work.profile->residency;
  const bool waited = state.waves.unplaced() > 0;
  const Waves::Passed passed = waited ? pass(state, now - settled_)
                                      : pass_placed(state, now - settled_);
  all_placed_ = all_placed_ || (waited && state.waves.unplaced() == 0);
  if (passed.freed > 0) {
    const bool all = state.waves.resident() == 0;
    all ? pool_.give_all(needs, state.placed)
        : pool_.give(in_pool(state), state.placed, passed.freed);
    changed_ = true;
  }
  if (passed.block_ns > 0) {
    shared_.usage.add_sm_ns(state.work.client, sm_ns(state, passed.block_ns));
  }
  if (state.work.kind == program::WorkKind::kCollective ? state.end > now
                                                        : !state.waves.finished()) {
    thin_ = thin_ || state.waves.resident() == 0;
    return true;
  }
  if (state.waves.resident() > 0) pool_.give_all(needs, state.placed);
  changed_ = true;
  shared_.note(Note::Kind::kFinished, id);
  return false;
}

// Drops works without resident blocks from the list, and returns whether rates may have changed.
void Context::tidy() {
  if (thin_) drop_thin();
  note_mix();
}

inline void Context::note_mix() {
  const bool was_mixed = std::exchange(mixed_, resident_clients_ > 1);
  rates_due_ = rates_due_ || mixed_ || was_mixed || !all_at_full_rate();
  note_cover();
}

void Context::drop_thin() {
  thin_ = false;
  std::size_t kept = 0;
  for (const WorkId id : resident_) {
    WorkState& state = shared_.works[id];
    if (state.waves.resident() > 0) {
      resident_[kept++] = id;
      continue;
    }
    set_listed(state, false);
    state.waves.pause();
    if (!kept_off(state)) continue;
    state.stalled = true;
    shared_.note(Note::Kind::kPaused, id);
  }
  resident_.resize(kept);
}

bool Context::nothing_is_due(SimTime now) const {
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    const bool lasts = state.work.kind == program::WorkKind::kCollective ? state.end > now
                                                                         : state.waves.lasts_on();
    if (!lasts) return false;
  }
  return true;
}

Duration Context::next_event(SimTime now) const {
  Duration next = arriving_.empty() ? Duration::max() : arriving_.front().at - now;
  double left = std::numeric_limits<double>::infinity();  // of kernels
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    if (state.work.kind == program::WorkKind::kKernel) {
      left = std::min(left, left_to_event(state));
    } else if (state.end != SimTime::max()) {
      next = std::min(next, std::max(state.end - now, Duration{}));
    }
  }
  return std::min(next, Waves::whole_ns(left));
}

// While one client is alone and unwatched, rates cannot change; then a kernel needs no event before
// its end, unless another kernel waits for its blocks to end.
double Context::left_to_event(const WorkState& state) const {
  const Waves& waves = state.waves;
  const bool undisturbed = !mixed_ && !watched_;
  if (waiting_.empty()) {
    return undisturbed ? waves.left_to_last_end() : waves.left_to_first_end();
  }
  const bool only_it_waits = waiting_.size() == 1 && &shared_.works[waiting_.front().id] == &state;
  if (!state.refills) return waves.left_to_first_end();
  return undisturbed && only_it_waits ? waves.left_to_last_end() : waves.left_to_last_placed();
}

}  // namespace bubblesim::gpu

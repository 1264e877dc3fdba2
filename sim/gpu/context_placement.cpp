// Who gets free blocks: priority, arrival, caps.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/gpu/context.hpp"

namespace bubblesim::gpu {
namespace {

// SMs. Covers are sums of fractions of SMs; their rounding must not cost a block.
constexpr double kCoverSlack = 1e-9;

}  // namespace

bool Context::as_recorded(ClientId client) const {
  return shared_.clients[client.index()].setup.own_kernels == program::OwnKernels::kAsRecorded &&
         !capped(client);
}

// How many of `most` further blocks of the work would fit now, as far as the GPU is concerned.
std::uint64_t Context::room_for(const WorkState& state, std::uint64_t most) const {
  const program::Residency& needs = state.work.profile->residency;
  const ClientSetup& setup = shared_.clients[state.work.client.index()].setup;
  if (setup.own_kernels == program::OwnKernels::kCompete) return pool_.fits(needs, most);
  return pool_.fits_beside_others(state.work.client, needs, state.waves.resident(), most);
}

bool Context::capped(ClientId client) const {
  return shared_.clients[client.index()].setup.sm_cap < shared_.spec.sm_count;
}

// What counts against its client's cap beside it. Collectives of a recorded program do not: one
// that spins until its peers come would hold the program's own kernels, on another stream, that
// the peers wait for, and the job would stand still for ever.
double Context::covered_by_others(WorkId id) const {
  const ClientId client = shared_.works[id].work.client;
  const bool recorded =
      shared_.clients[client.index()].setup.own_kernels == program::OwnKernels::kAsRecorded;
  double sms = 0;
  for (const WorkId other : resident_) {
    const WorkState& state = shared_.works[other];
    if (other == id || state.work.client != client) continue;
    if (!recorded || state.work.kind != program::WorkKind::kCollective) sms += covered_sms(state);
  }
  return sms;
}

// How many more blocks of the work the client's cap allows.
std::uint64_t Context::cap_room(WorkId id) const {
  const WorkState& state = shared_.works[id];
  const double cap = shared_.clients[state.work.client.index()].setup.sm_cap;
  const double free = cap - covered_by_others(id) + kCoverSlack;
  if (free <= 0) return 0;
  const auto allowed =
      static_cast<std::uint64_t>(free * state.work.profile->residency.blocks_per_sm);
  return allowed > state.waves.resident() ? allowed - state.waves.resident() : 0;
}

// Whether blocks of the work that end are sure to be followed by blocks of the same work, if the
// GPU holds nobody before it: nobody of its client comes before it, and that is within its cap.
bool Context::refills_itself(std::size_t place) const {
  const WorkState& state = shared_.works[waiting_[place].id];
  const ClientId client = state.work.client;
  if (!capped(client)) return true;
  for (std::size_t i = 0; i < place; ++i) {
    if (waiting_[i].client == client) return false;
  }
  const double cap = shared_.clients[client.index()].setup.sm_cap;
  return covered_by_others(waiting_[place].id) + covered_sms(state) <= cap + kCoverSlack;
}

void Context::catch_up(SimTime now) {
  if (frozen_ || settled_ == now) return;
  settle(now);
  place(now);
}

// Who waits for room keeps all behind it waiting, but not kernels of its client that shared space
// with it when they were recorded.
void Context::place(SimTime now) {
  if (!changed_) return;
  std::optional<ClientId> ahead;
  bool behind_held = false;
  const std::size_t marked = std::exchange(marked_, 0);
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto [id, client] = waiting_[i];
    const bool blocked = ahead && (*ahead != client || !as_recorded(client));
    if (blocked && i >= marked) continue;  // it does not refill itself
    WorkState& state = shared_.works[id];
    const bool off = kept_off(state);
    state.refills = !off && !blocked && refills_itself(i);
    state.behind_held = !off && behind_held;
    if (state.refills) marked_ = i + 1;
    if (off || blocked) continue;
    const Held held = place_one(id, now);
    if (held == Held::kByGpu) ahead = client;
    behind_held = behind_held || held == Held::kByCap;
    all_placed_ = all_placed_ || held == Held::kNot;
  }
  drop_placed();
  changed_ = false;
  tidy(now);
}

// Driven off the GPU. A kernel that has begun may end if no more was asked.
bool Context::kept_off(const WorkState& state) const {
  const std::optional<program::Preemption> off = shared_.clients[state.work.client.index()].off;
  if (!off || off == program::Preemption::kContextSwitch) return false;
  if (state.work.kind == program::WorkKind::kCollective && state.started) return false;
  return off != program::Preemption::kAfterKernel || !state.started;
}

// What keeps the rest of its blocks out. Where both would, it is the cap: more room on the GPU
// would not help.
Context::Held Context::place_one(WorkId id, SimTime now) {
  WorkState& state = shared_.works[id];
  const program::Residency& needs = state.work.profile->residency;
  const std::uint64_t alone = std::uint64_t{needs.blocks_per_sm} * shared_.spec.sm_count;
  const std::uint64_t resident = state.waves.resident();
  const bool has_cap = capped(state.work.client);
  std::uint64_t wanted = alone > resident ? alone - resident : 0;
  if (!has_cap && state.work.most_blocks == 0) wanted = std::min(wanted, state.waves.unplaced());
  std::uint64_t room = room_for(state, wanted);
  bool held_by_cap = false;
  if (has_cap) {
    const std::uint64_t allowed = cap_room(id);
    held_by_cap = allowed <= room;
    room = std::min(room, allowed);
  }
  if (state.work.most_blocks > 0) {
    const std::uint64_t most = state.work.most_blocks;
    const std::uint64_t allowed = most > resident ? most - resident : 0;
    held_by_cap = held_by_cap || allowed <= room;
    room = std::min(room, allowed);
  }
  const std::uint64_t blocks = std::min(room, state.waves.unplaced());
  if (blocks > 0) {
    if (resident == 0) state.waves.set_rate(1);  // corrected by set_rates() if others are there
    pool_.take(state.work.client, needs, blocks);
    if (!state.started && state.work.kind == program::WorkKind::kKernel) follow(state);
    state.waves.place(blocks);
    if (!state.listed) {
      state.listed = true;
      resident_.push_back(id);
      set_running(state, true, now);
    }
    if (state.stalled) {
      state.stalled = false;
      shared_.notes.push_back({Note::Kind::kResumed, id});
    }
    tell_started(id);
  }
  if (state.waves.unplaced() == 0) return Held::kNot;
  return held_by_cap ? Held::kByCap : Held::kByGpu;
}

// The front end passes from one process's channel to another's; streams of one process are alike.
void Context::follow(WorkState& state) {
  if (!shared_.processes) return;
  const ClientId client = state.work.client;
  if (last_placed_ && *last_placed_ != client) state.waves.postpone(shared_.spec.client_switch);
  last_placed_ = client;
}

bool Context::leaves_alone(const Work& work) const {
  if (!resident_.empty() || !waiting_.empty() || frozen_ || watched_) return false;
  if (leftover_ > 0 || contention_.bandwidth() < 1 || capped(work.client)) return false;
  if (shared_.clients[work.client.index()].off) return false;
  const bool follows = shared_.processes && last_placed_;
  return (!follows || *last_placed_ == work.client) &&
         pool_.has_room_for_all(work.profile->residency);
}

void Context::pass_alone(ClientId client, SimTime now) {
  if (shared_.processes) last_placed_ = client;
  settled_ = now;
  changed_ = mixed_ = false;
}

void Context::take_over(WorkId id, SimTime since) {
  WorkState& state = shared_.works[id];
  const program::KernelProfile& profile = *state.work.profile;
  state.waves.start(state.work.solo, profile.blocks,
                    std::uint64_t{profile.residency.blocks_per_sm} * shared_.spec.sm_count);
  add(id);
  place(since);
}

void Context::tell_started(WorkId id) {
  WorkState& state = shared_.works[id];
  const bool complete = state.waves.unplaced() == 0;
  if (state.started || (state.work.kind == program::WorkKind::kCollective && !complete)) return;
  state.started = true;
  shared_.notes.push_back({Note::Kind::kStarted, id});
}

}  // namespace bubblesim::gpu

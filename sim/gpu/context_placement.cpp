// Which kernels get free blocks: priority, arrival, caps.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/gpu/context.hpp"

namespace bubblesim::gpu {

bool Context::as_recorded(ClientId client) const {
  return shared_.clients[client.index()].setup.own_kernels == program::OwnKernels::kAsRecorded &&
         !capped(client);
}

// Kernels of one program that shared space as recorded do not conflict. Usually there is none.
SmBlocks::Kernel Context::in_pool(const WorkState& state) {
  const ClientId client = state.work.client;
  const ClientState& owner = shared_.clients[client.index()];
  SmBlocks::Kernel kernel{state.work.profile->residency, state.placed, owner.sms};
  if (owner.setup.own_kernels == program::OwnKernels::kCompete) return kernel;
  if (owner.listed == (state.listed ? 1U : 0U)) return kernel;
  for (const WorkId id : resident_) {
    const WorkState& other = shared_.works[id];
    if (other.work.client != client || &other == &state) continue;
    kernel.passed_over =
        pool_.add(kernel.passed_over, other.work.profile->residency, other.placed);
  }
  return kernel;
}

bool Context::capped(ClientId client) const {
  return shared_.clients[client.index()].setup.sm_cap < shared_.spec.sm_count;
}

// The other work that counts against the client's cap beside this one. Collectives of a recorded
// program do not count: one that spins until its peers come would keep out the program's own
// kernels, on another stream, for which the peers wait, and the job would never go on.
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

// How many more blocks of the work its client's cap allows.
std::uint64_t Context::cap_room(WorkId id) const {
  const WorkState& state = shared_.works[id];
  const double cap = shared_.clients[state.work.client.index()].setup.sm_cap;
  const double free = cap - covered_by_others(id) + kCoverSlack;
  if (free <= 0) return 0;
  const auto allowed =
      static_cast<std::uint64_t>(free * state.work.profile->residency.blocks_per_sm);
  return allowed > state.waves.resident() ? allowed - state.waves.resident() : 0;
}

// Whether blocks of the same work are sure to follow its ending blocks, if no other client comes
// first: no earlier work of its client waits, and the client is within its cap.
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

// Kernels that have passed the front end now come after completions of this instant, one by one.
void Context::place(SimTime now) {
  place_waiting();
  while (!arriving_.empty() && arriving_.front().at <= now) {
    add(arriving_.front().id);
    arriving_.erase(arriving_.begin());
    place_waiting();
  }
}

// Highest priority first. Processes of one priority share room. Streams of one process, and a
// process that is alone in its priority, are served in order.
void Context::place_waiting() {
  if (!changed_) return;
  if (waiting_.empty()) {
    marked_ = 0;
    all_placed_ = changed_ = false;
    return tidy();
  }
  Line line;
  awaited_.clear();
  const std::size_t marked = std::exchange(marked_, 0);
  for (std::size_t from = 0; from < waiting_.size();) {
    const std::size_t to = shared_.even ? level_end(from) : waiting_.size();
    if (!line.ahead && awaited_.empty() && several_clients(from, to)) {
      share_room(from, to, line);
    } else {
      place_in_order(from, to, marked, line);
    }
    from = to;
  }
  drop_placed();
  changed_ = false;
  tidy();
}

// A work that waits for room blocks all later ones that may use the same SMs, except kernels of its
// client that shared space with it when they were recorded.
void Context::hold_up(Line& line, ClientId client) {
  if (capped(client)) {
    awaited_.push_back(shared_.clients[client.index()].sms);
  } else {
    line.ahead = client;
  }
}

bool Context::waits_behind(const Line& line, ClientId client) const {
  if (line.ahead && (*line.ahead != client || !as_recorded(client))) return true;
  const SmRange own = shared_.clients[client.index()].sms;
  return std::any_of(awaited_.begin(), awaited_.end(), [own](SmRange sms) {
    return sms.begin < own.end && own.begin < sms.end;
  });
}

// The first of the client's kernels in [from, to) of waiting_; usually there is none, among many.
std::size_t Context::next_of(ClientId client, std::size_t from, std::size_t to) const {
  if (!as_recorded(client)) return to;
  const auto begin = waiting_.begin();
  const auto place = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  const auto found = std::find_if(begin + place(from), begin + place(to),
                                  [client](const Waiting& next) { return next.client == client; });
  return static_cast<std::size_t>(found - begin);
}

void Context::place_in_order(std::size_t from, std::size_t to, std::size_t marked, Line& line) {
  for (std::size_t i = from; i < to; ++i) {
    if (line.ahead && i >= marked) i = next_of(*line.ahead, i, to);
    if (i == to) return;
    const auto [id, client] = waiting_[i];
    const bool blocked = waits_behind(line, client);
    WorkState& state = shared_.works[id];
    if (blocked && !line.ahead && !kept_off(state) && allowed(id) > 0) hold_up(line, client);
    if (blocked && i >= marked) continue;  // the work does not refill itself
    const bool off = kept_off(state);
    state.refills = !off && !blocked && refills_itself(i);
    state.behind_held = !off && line.behind_held;
    if (state.refills) marked_ = i + 1;
    if (off || blocked) continue;
    const HeldBack held = place_one(id, kAllBlocks);
    if (held == HeldBack::kByGpu) hold_up(line, client);
    line.behind_held = line.behind_held || held == HeldBack::kByCap;
    all_placed_ = all_placed_ || held == HeldBack::kNot;
  }
}

// Whether the work's client was driven off the GPU. A kernel that has begun may end, unless the
// preemption stops it.
bool Context::kept_off(const WorkState& state) const {
  const std::optional<program::Preemption> off = shared_.clients[state.work.client.index()].off;
  if (!off || off == program::Preemption::kContextSwitch) return false;
  if (state.work.kind == program::WorkKind::kCollective && state.started) return false;
  return off != program::Preemption::kAfterKernel || !state.started;
}

// How many more blocks of the work its client's cap and its own form allow.
std::uint64_t Context::allowed(WorkId id) const {
  const WorkState& state = shared_.works[id];
  std::uint64_t allowed = capped(state.work.client) ? cap_room(id) : kAllBlocks;
  if (state.work.most_blocks > 0) {
    const std::uint64_t most = state.work.most_blocks;
    const std::uint64_t resident = state.waves.resident();
    allowed = std::min(allowed, most > resident ? most - resident : 0);
  }
  return allowed;
}

// Places as many blocks as fit, at most `most`, and returns the limit that holds the rest. If both
// the cap and the GPU do, it is the cap: more room on the GPU would not help.
Context::HeldBack Context::place_one(WorkId id, std::uint64_t most) {
  WorkState& state = shared_.works[id];
  const program::Residency& needs = state.work.profile->residency;
  const std::uint64_t alone = std::uint64_t{needs.blocks_per_sm} * shared_.spec.sm_count;
  const std::uint64_t resident = state.waves.resident();
  const std::uint64_t cap = allowed(id);
  std::uint64_t wanted = alone > resident ? alone - resident : 0;
  if (cap == kAllBlocks) wanted = std::min(wanted, state.waves.unplaced());
  const std::uint64_t blocks = pool_.find_room(
      in_pool(state), std::min({wanted, cap, most, state.waves.unplaced()}));
  if (blocks > 0) {
    if (resident == 0) state.waves.set_rate(1);  // corrected by set_rates() if other kernels are
                                                 // resident
    pool_.take(state.placed);
    state.waves.place(blocks);
    if (!state.listed) {
      set_listed(state, true);
      resident_.push_back(id);
    }
    if (state.stalled) {
      state.stalled = false;
      shared_.note(Note::Kind::kResumed, id);
    }
    tell_started(id);
  }
  if (state.waves.unplaced() == 0) return HeldBack::kNot;
  return blocks == cap ? HeldBack::kByCap : HeldBack::kByGpu;
}

// The front end switches from one process's channel to another's, which delays only the kernel for
// which it switches. Kernels of one process keep their order.
void Context::arrive(WorkId id, SimTime now) {
  if (!shared_.processes) return add(id);
  const ClientId client = shared_.works[id].work.client;
  last_arrival_ = passes_front_end(client, now);
  last_client_ = client;
  if (last_arrival_ == now) return add(id);
  arriving_.push_back({id, last_arrival_});
}

// When a kernel of the client that is submitted now has passed the front end.
SimTime Context::passes_front_end(ClientId client, SimTime now) const {
  if (!last_client_ || *last_client_ == client) return std::max(last_arrival_, now);
  return now + shared_.spec.client_switch;
}

bool Context::leaves_alone(const Work& work) const {
  if (!resident_.empty() || !waiting_.empty() || !arriving_.empty()) return false;
  if (frozen_ || watched_) return false;
  if (leftover_ > 0 || contention_.bandwidth() < 1 || capped(work.client)) return false;
  if (shared_.clients[work.client.index()].off) return false;
  const bool follows = shared_.processes && last_client_;
  return (!follows || *last_client_ == work.client) &&
         pool_.has_room_for_all(work.profile->residency);
}

// Whether no resident kernel or collective has ended since the last settling.
inline bool Context::all_go_on(SimTime now) const {
  const Duration span = now - settled_;
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    if (state.behind_held) return false;
    const bool ended = state.work.kind == program::WorkKind::kCollective
                           ? state.end <= now
                           : span > Duration::zero() && !state.waves.goes_on(span);
    if (ended) return false;
  }
  return true;
}

bool Context::begin_beside(WorkId id, SimTime now) {
  if (!waiting_.empty() || !arriving_.empty() || changed_ || thin_ || frozen_) return false;
  WorkState& state = shared_.works[id];
  const ClientId client = state.work.client;
  if (capped(client) || shared_.clients[client.index()].off) return false;
  if (shared_.processes && passes_front_end(client, now) > now) return false;
  if (!all_go_on(now)) return false;
  const std::uint64_t blocks = state.waves.unplaced();
  if (blocks != state.waves.full_wave()) return false;
  if (pool_.find_room(in_pool(state), blocks) != blocks) return false;
  if (settled_ != now) settle(now);
  last_arrival_ = now;
  last_client_ = client;
  pool_.take(state.placed);
  state.sm_share = contention_.sm_share(whole_wave(state));
  state.waves.set_rate(1);
  state.waves.place(blocks);
  state.refills = state.started = true;
  set_listed(state, true);
  resident_.push_back(id);
  const bool was_mixed = mixed_;
  mixed_ = resident_clients_ > 1;
  note_cover();
  rates_due_ = rates_due_ || mixed_ || was_mixed || !all_at_full_rate();
  return true;
}

void Context::pass_alone(ClientId client, SimTime now) {
  if (shared_.processes) last_client_ = client;
  settled_ = now;
  changed_ = mixed_ = false;
}

void Context::take_over(WorkId id, SimTime since) {
  start_waves(shared_.works[id], shared_.spec.sm_count);
  add(id);
  place(since);
}

void Context::tell_started(WorkId id) {
  WorkState& state = shared_.works[id];
  const bool complete = state.waves.unplaced() == 0;
  if (state.started || (state.work.kind == program::WorkKind::kCollective && !complete)) return;
  state.started = true;
  shared_.note(Note::Kind::kStarted, id);
}

}  // namespace bubblesim::gpu

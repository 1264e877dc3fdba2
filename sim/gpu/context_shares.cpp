// Room of clients of equal priority: the processes of an MPS server.
//
// Clients of one priority whose kernels wait at the same time get equal parts of the SMs that
// clients outside this group do not cover. A part that a client cannot use, because of its own cap,
// is divided among the others. The first client in order of arrival that is below its part places a
// block, until none can; if no waiting client is below its part, the remaining SMs go to clients in
// order of arrival. Collectives come first. So parts change when a kernel comes, has placed its
// last block, or ends, and in between kernels replace their own blocks, which costs no events.
#include <algorithm>
#include <cstdint>

#include "sim/gpu/context.hpp"

namespace bubblesim::gpu {
namespace {

// SMs. Rounding of sums must not cost a block, as with caps.
constexpr double kPartSlack = 1e-9;

}  // namespace

std::size_t Context::level_end(std::size_t from) const {
  const auto priority = [this](std::size_t i) {
    return shared_.clients[waiting_[i].client.index()].setup.priority;
  };
  std::size_t to = from + 1;
  while (to < waiting_.size() && priority(to) == priority(from)) ++to;
  return to;
}

bool Context::several_clients(std::size_t from, std::size_t to) const {
  if (!shared_.even) return false;
  for (std::size_t i = from + 1; i < to; ++i) {
    if (waiting_[i].client != waiting_[from].client) return true;
  }
  return false;
}

double Context::covered(ClientId client) const {
  double sms = 0;
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    if (state.work.client == client) sms += covered_sms(state);
  }
  return sms;
}

// Whether the kernel's blocks wait, and a cap holds every earlier kernel of its client.
bool Context::in_line(std::size_t from, std::size_t place) const {
  const auto [id, client] = waiting_[place];
  const auto waits = [this](WorkId work) {
    return shared_.works[work].waves.unplaced() > 0 && !kept_off(shared_.works[work]);
  };
  if (!waits(id)) return false;
  if (as_recorded(client)) return true;
  for (std::size_t i = from; i < place; ++i) {
    const WorkId earlier = waiting_[i].id;
    if (waiting_[i].client == client && waits(earlier) && allowed(earlier) > 0) return false;
  }
  return true;
}

// Whether the kernel may place blocks: it is the next of its client.
bool Context::leads(std::size_t from, std::size_t place) const {
  return in_line(from, place) && allowed(waiting_[place].id) > 0;
}

// The SMs of each client's equal part. Clients that their caps hold below that drop out, and leave
// more to the others.
double Context::part_of_each(std::size_t from, std::size_t to) {
  contenders_.clear();
  for (std::size_t i = from; i < to; ++i) {
    const auto [id, client] = waiting_[i];
    const WorkState& state = shared_.works[id];
    if (state.waves.unplaced() == 0 || kept_off(state)) continue;
    const bool held = allowed(id) == 0;
    const auto known = std::find_if(contenders_.begin(), contenders_.end(),
                                    [&](const Contender& c) { return c.client == client; });
    if (known == contenders_.end()) {
      contenders_.push_back({client, 0, held});
    } else {
      known->held = known->held && held;
    }
  }
  double free = shared_.spec.sm_count;
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    const auto own = std::find_if(contenders_.begin(), contenders_.end(), [&](const Contender& c) {
      return c.client == state.work.client;
    });
    if (own == contenders_.end()) {
      free -= covered_sms(state);
    } else {
      own->sms += covered_sms(state);
    }
  }
  while (!contenders_.empty()) {
    const double part = std::max(0.0, free) / static_cast<double>(contenders_.size());
    const auto out = std::find_if(contenders_.begin(), contenders_.end(), [&](const Contender& c) {
      return c.held && c.sms <= part + kPartSlack;
    });
    if (out == contenders_.end()) return part;
    free -= out->sms;
    contenders_.erase(out);
  }
  return shared_.spec.sm_count;
}

// Whether the kernel's client may place one more of its blocks within its part. Collectives have no
// part: their blocks are useful only together.
bool Context::below(std::size_t place, double part) const {
  const WorkState& state = shared_.works[waiting_[place].id];
  if (state.work.kind == program::WorkKind::kCollective) return true;
  return covered(state.work.client) + 1.0 / state.work.profile->residency.blocks_per_sm <=
         part + kPartSlack;
}

// Places blocks until a kernel has no more to place, and parts change; false if no kernel gets
// there. The first waiting collective gets all its blocks before any other kernel: two collectives
// with half of the SMs each would wait for each other for ever.
bool Context::place_next(std::size_t from, std::size_t to, double part) {
  bool waits = false;
  for (std::size_t i = from; i < to && !waits; ++i) {
    const WorkId id = waiting_[i].id;
    if (shared_.works[id].work.kind != program::WorkKind::kCollective || !leads(from, i)) continue;
    if (place_one(id, kAllBlocks) != HeldBack::kByGpu) return true;
    waits = true;
  }
  for (std::size_t i = from; i < to; ++i) {
    const auto [id, client] = waiting_[i];
    const WorkState& state = shared_.works[id];
    if (state.work.kind == program::WorkKind::kCollective) continue;
    if (!leads(from, i) || !below(i, part)) continue;
    const auto most = static_cast<std::uint64_t>((part - covered(client) + kPartSlack) *
                                                 state.work.profile->residency.blocks_per_sm);
    if (place_one(id, most) != HeldBack::kByGpu) return true;
    waits = waits || below(i, part);
  }
  return !waits && place_beyond(from, to);
}

// The same for SMs beyond all parts, in order of arrival: a kernel that waits for room blocks all
// later ones.
bool Context::place_beyond(std::size_t from, std::size_t to) {
  std::optional<ClientId> ahead;
  for (std::size_t i = from; i < to; ++i) {
    const auto [id, client] = waiting_[i];
    if (!leads(from, i)) continue;
    if (ahead && *ahead != client) break;
    if (place_one(id, kAllBlocks) != HeldBack::kByGpu) return true;
    ahead = client;
  }
  return false;
}

// Marks kernels whose ending blocks are sure to be followed by blocks of the same kernel: no other
// client waits below its part, and the client is within its own part, or first to get the remaining
// SMs. While a client holds more than its part, an event may put other clients below their parts,
// and these come first.
void Context::mark_refills(std::size_t from, std::size_t to, double part, Line& line) {
  std::optional<ClientId> hungry;
  bool several_hungry = false, any_held = line.behind_held, any_beyond = false;
  for (std::size_t i = from; i < to; ++i) {
    const auto [id, client] = waiting_[i];
    const WorkState& state = shared_.works[id];
    any_held = any_held ||
               (state.waves.unplaced() > 0 && !kept_off(state) && allowed(id) == 0);
    any_beyond = any_beyond || covered(client) > part + kPartSlack;
    if (!leads(from, i)) continue;
    if (!line.ahead) line.ahead = client;
    if (!below(i, part)) continue;
    several_hungry = several_hungry || (hungry && *hungry != client);
    hungry = client;
  }
  for (std::size_t i = from; i < to; ++i) {
    const auto [id, client] = waiting_[i];
    WorkState& state = shared_.works[id];
    const bool others_wait = several_hungry || (hungry && *hungry != client);
    const bool fits = covered(client) <= part + kPartSlack;
    state.refills = in_line(from, i) && !others_wait && (fits || line.ahead == client) &&
                    refills_itself(i);
    state.behind_held = any_held || any_beyond;
    if (state.refills) marked_ = i + 1;
  }
  line.behind_held = any_held;
}

void Context::share_room(std::size_t from, std::size_t to, Line& line) {
  double part = part_of_each(from, to);
  while (place_next(from, to, part)) part = part_of_each(from, to);
  all_placed_ = true;
  mark_refills(from, to, part, line);
}

}  // namespace bubblesim::gpu

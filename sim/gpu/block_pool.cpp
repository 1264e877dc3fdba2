#include "sim/gpu/block_pool.hpp"

namespace bubblesim::gpu {
namespace {

std::uint32_t minus(std::uint32_t a, std::uint32_t b) { return a - std::min(a, b); }

}  // namespace

BlockPool::BlockPool(const hardware::GpuSpec& spec)
    : total_{spec.sm.max_warps, spec.sm.registers,
             static_cast<std::uint32_t>(spec.sm.shared_memory_bytes), spec.sm.max_blocks},
      sm_count_(spec.sm_count),
      held_(sm_count_) {}

bool BlockPool::has_room_for_all(const program::Residency& needs) const {
  if (!held_.uniform() || held_.runs().front().each.slots > 0) return false;
  const SmLoad wave = load_of(needs, needs.blocks_per_sm);
  return wave.warps <= total_.warps && wave.registers <= total_.registers &&
         wave.shared_memory <= total_.shared_memory && wave.slots <= total_.slots;
}

// Mostly as many fit as on an empty SM, which takes no division to see. Kernels of one client that
// share space as recorded may hold more than there is: to others they then hold everything.
std::uint32_t BlockPool::most_beside(const SmLoad& others, const program::Residency& needs) const {
  std::uint32_t blocks = needs.blocks_per_sm;
  if (others.slots == 0) return blocks;
  blocks = std::min(blocks, minus(total_.slots, others.slots));
  const std::uint32_t warps = minus(total_.warps, others.warps);
  const std::uint32_t registers = minus(total_.registers, others.registers);
  const std::uint32_t shared_memory = minus(total_.shared_memory, others.shared_memory);
  const SmLoad one = load_of(needs, 1);
  if (one.warps * blocks > warps) blocks = warps / one.warps;
  if (one.registers * blocks > registers) blocks = registers / one.registers;
  if (one.shared_memory * blocks > shared_memory) blocks = shared_memory / one.shared_memory;
  return blocks;
}

// Calls visit(range, placed, room) for parts of the SMs: each of the range holds so many blocks of
// the kernel, and has room for so many more.
template <class Visit>
void BlockPool::each_room(const Kernel& kernel, SmRange sms, Visit visit) const {
  auto held = held_.runs().begin();
  auto placed = kernel.placed.runs().begin();
  const BySm<SmLoad>::Run nothing{sm_count_, {}};
  const BySm<SmLoad>::Run* over = kernel.passed_over ? kernel.passed_over->runs().data() : &nothing;
  for (std::uint32_t begin = sms.begin; begin < sms.end;) {
    while (held->end <= begin) ++held;
    while (placed->end <= begin) ++placed;
    while (over->end <= begin) ++over;
    const std::uint32_t end = std::min({held->end, placed->end, over->end, sms.end});
    SmLoad others = held->each;
    others -= over->each;
    if (placed->each > 0) others -= load_of(kernel.needs, placed->each);
    visit(SmRange{begin, end}, placed->each,
          minus(most_beside(others, kernel.needs), placed->each));
    begin = end;
  }
}

std::uint64_t BlockPool::find_room(const Kernel& kernel) {
  std::uint64_t all = 0;
  offers_.clear();
  each_room(kernel, kernel.sms, [&](SmRange sms, std::uint32_t, std::uint32_t room) {
    if (room == 0) return;
    offers_.push_back({sms, 1, room + 1});
    all += std::uint64_t{offers_.back().count()} * room;
  });
  return all;
}

// The level of offers_ at which the last of so many blocks go; `blocks` becomes how many do.
std::uint32_t BlockPool::last_level(std::uint64_t& blocks) const {
  std::uint32_t level = 0;
  for (const Offer& offer : offers_) level = std::max(level, offer.high);
  while (level > 0) {
    // Down to the next level at which some SM begins to offer, or ends.
    std::uint32_t next = 0;
    std::uint64_t sms = 0;
    for (const Offer& offer : offers_) {
      const bool offers = offer.low < level && level <= offer.high;
      const std::uint32_t bound = level <= offer.low ? 0 : offers ? offer.low : offer.high;
      if (offers) sms += offer.count();
      next = std::max(next, bound);
    }
    if (sms > 0 && blocks <= sms * (level - next)) {
      const std::uint64_t full = (blocks - 1) / sms;
      blocks -= full * sms;
      return level - 1 - static_cast<std::uint32_t>(full);
    }
    blocks -= sms * (level - next);
    level = next;
  }
  return level;
}

// So many blocks take what offers_ has at the highest levels, at the last of them in order; calls
// use(begin, end, blocks on each of them). Precondition: so many are offered, and at least one.
template <class Use>
void BlockPool::draw(std::uint64_t blocks, bool first_sms, Use use) const {
  const std::uint32_t level = last_level(blocks);
  for (const Offer& offer : offers_) {
    const std::uint32_t above = minus(offer.high, std::max(offer.low, level + 1));
    std::uint32_t last = 0;
    if (offer.low <= level && level < offer.high) {
      last = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, offer.count()));
      blocks -= last;
    }
    const auto [begin, end] = offer.sms;
    const std::uint32_t middle = first_sms ? begin + last : end - last;
    const std::uint32_t before = above + (first_sms ? 1 : 0);
    const std::uint32_t after = above + (first_sms ? 0 : 1);
    if (begin < middle && before > 0) use(begin, middle, before);
    if (middle < end && after > 0) use(middle, end, after);
  }
}

void BlockPool::take(const program::Residency& needs, Footprint& placed, std::uint64_t blocks) {
  draw(blocks, true, [&](std::uint32_t begin, std::uint32_t end, std::uint32_t each) {
    held_.change(begin, end, [load = load_of(needs, each)](SmLoad& held) { held += load; });
    placed.change(begin, end, [each](std::uint32_t& here) { here += each; });
  });
}

// Levels count room from above.
void BlockPool::give(const Kernel& kernel, Footprint& placed, std::uint64_t blocks) {
  const std::uint32_t top = kernel.needs.blocks_per_sm + 1;
  offers_.clear();
  each_room(kernel, {0, sm_count_}, [&](SmRange sms, std::uint32_t here, std::uint32_t room) {
    if (here > 0) offers_.push_back({sms, top - room - here, top - room});
  });
  std::reverse(offers_.begin(), offers_.end());
  draw(blocks, false, [&](std::uint32_t begin, std::uint32_t end, std::uint32_t each) {
    held_.change(begin, end, [load = load_of(kernel.needs, each)](SmLoad& held) { held -= load; });
    placed.change(begin, end, [each](std::uint32_t& here) { here -= each; });
  });
}

void BlockPool::give_all(const program::Residency& needs, Footprint& placed) {
  placed.each_set([&](std::uint32_t begin, std::uint32_t end, std::uint32_t each) {
    held_.change(begin, end, [load = load_of(needs, each)](SmLoad& held) { held -= load; });
  });
  placed.clear();
}

}  // namespace bubblesim::gpu

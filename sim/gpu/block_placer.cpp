#include "sim/gpu/block_placer.hpp"

#include <algorithm>

namespace bubblesim::gpu {
namespace {

std::uint32_t minus(std::uint32_t a, std::uint32_t b) { return a - std::min(a, b); }

}  // namespace

BlockPlacer::BlockPlacer(const hardware::GpuSpec& spec)
    : total_{spec.sm.max_warps, spec.sm.registers,
             static_cast<std::uint32_t>(spec.sm.shared_memory_bytes), spec.sm.max_blocks},
      sm_count_(spec.sm_count) {}

bool BlockPlacer::has_room_for_all(const program::Residency& needs) const {
  const SmLoad wave = load_of(needs) * needs.blocks_per_sm;
  return wave.warps <= total_.warps && wave.registers <= total_.registers &&
         wave.shared_memory <= total_.shared_memory && wave.slots <= total_.slots;
}

// Usually as many blocks fit as on an empty SM, which needs no division. Kernels of one client that
// share space as recorded may together exceed an SM: for other clients they then fill it.
inline std::uint32_t BlockPlacer::most_beside(const SmLoad& others, const SmLoad& block,
                                              std::uint32_t most) const {
  if (others.slots == 0) return most;
  std::uint32_t blocks = std::min(most, minus(total_.slots, others.slots));
  const std::uint32_t warps = minus(total_.warps, others.warps);
  const std::uint32_t registers = minus(total_.registers, others.registers);
  const std::uint32_t shared_memory = minus(total_.shared_memory, others.shared_memory);
  if (block.warps * blocks > warps) blocks = warps / block.warps;
  if (block.registers * blocks > registers) blocks = registers / block.registers;
  if (block.shared_memory * blocks > shared_memory) blocks = shared_memory / block.shared_memory;
  return blocks;
}

// Calls visit(range, placed, others) for ranges of SMs: each SM of a range holds `placed` of the
// kernel's blocks, and `others` is the room that conflicting kernels hold there.
template <class Visit>
inline void BlockPlacer::each_part(const Held& all, const Kernel& kernel, SmRange sms,
                            Visit visit) const {
  auto held = all.runs().begin();
  auto placed = kernel.placed.runs().begin();
  auto passed = kernel.passed_over.runs().begin();
  for (std::uint32_t begin = sms.begin; begin < sms.end;) {
    while (held->end <= begin) ++held;
    while (placed->end <= begin) ++placed;
    while (passed->end <= begin) ++passed;
    const std::uint32_t end = std::min({held->end, placed->end, passed->end, sms.end});
    SmLoad others = held->value;
    others -= passed->value;
    others -= kernel.block * placed->value;
    visit(SmRange{begin, end}, placed->value, others);
    begin = end;
  }
}

// How many more blocks of the kernel fit on an SM with this load.
inline std::uint32_t BlockPlacer::room(const Kernel& kernel, std::uint32_t placed,
                                       const SmLoad& others) const {
  return minus(most_beside(others, kernel.block, kernel.blocks_per_sm), placed);
}

// Usually a kernel's first blocks take all free room.
std::uint64_t BlockPlacer::find_room(const Held& held, const Kernel& kernel, std::uint64_t most) {
  std::uint64_t found = 0;
  drawn_.restart();
  drawn_.append(kernel.sms.begin, 0);
  const auto note = [&](SmRange sms, std::uint32_t placed, const SmLoad& others) {
    const std::uint32_t more = room(kernel, placed, others);
    drawn_.append(sms.end, more);
    found += std::uint64_t{sms.end - sms.begin} * more;
  };
  each_part(held, kernel, kernel.sms, note);
  drawn_.append(sm_count_, 0);
  if (found <= most) return found;
  if (drawn_.uniform()) {
    draw_evenly(most);
  } else {
    offer_room();
    draw(most, Side::kFirstSms);
  }
  return most;
}

// Levels count the room from the greatest down.
void BlockPlacer::choose_leavers(const Held& held, const Kernel& kernel, std::uint64_t blocks) {
  const std::uint32_t top = kernel.blocks_per_sm + 1;
  offers_.clear();
  const SmRange all{0, sm_count_};
  each_part(held, kernel, all, [&](SmRange sms, std::uint32_t placed, const SmLoad& others) {
    if (placed == 0) return;
    const std::uint32_t high = top - room(kernel, placed, others);
    offers_.push_back({sms, high - placed, high});
  });
  draw(blocks, Side::kLastSms);
}

void BlockPlacer::offer_room() {
  offers_.clear();
  std::uint32_t begin = 0;
  for (const auto& [end, room] : drawn_.runs()) {
    if (room > 0) offers_.push_back({{begin, end}, 1, room + 1});
    begin = end;
  }
}

// The level of offers_ at which the last of `blocks` blocks are placed. Precondition: at least one
// block, and as many are offered.
BlockPlacer::LastLevel BlockPlacer::last_level(std::uint64_t blocks) const {
  std::uint32_t level = 0;
  for (const Offer& offer : offers_) level = std::max(level, offer.high);
  while (level > 0) {
    // The next lower level at which an SM's offer begins or ends.
    std::uint32_t next = 0;
    std::uint32_t sms = 0;
    for (const Offer& offer : offers_) {
      const bool offers = offer.low < level && level <= offer.high;
      const std::uint32_t bound = level <= offer.low ? 0 : offers ? offer.low : offer.high;
      if (offers) sms += offer.count();
      next = std::max(next, bound);
    }
    const std::uint64_t offered = std::uint64_t{sms} * (level - next);
    if (sms > 0 && blocks <= offered) {
      const std::uint64_t full = (blocks - 1) / sms;
      return {level - 1 - static_cast<std::uint32_t>(full), sms,
              static_cast<std::uint32_t>(blocks - full * sms)};
    }
    blocks -= offered;
    level = next;
  }
  return {};
}

// Blocks take the highest levels of offers_; at their last level they take the first or the last
// SMs that offer it. drawn_ gets the number of blocks on each SM.
void BlockPlacer::draw(std::uint64_t blocks, Side side) {
  const LastLevel last = last_level(blocks);
  std::uint32_t skipped = side == Side::kFirstSms ? 0 : last.sms - last.blocks;
  std::uint32_t left = last.blocks;
  drawn_.restart();
  for (const Offer& offer : offers_) {
    const auto [begin, end] = offer.sms;
    const std::uint32_t above = minus(offer.high, std::max(offer.low, last.level + 1));
    drawn_.append(begin, 0);
    if (offer.low <= last.level && last.level < offer.high) {
      const std::uint32_t from = begin + std::min(skipped, end - begin);
      const std::uint32_t to = from + std::min(left, end - from);
      skipped -= from - begin;
      left -= to - from;
      drawn_.append(from, above);
      drawn_.append(to, above + 1);
    }
    drawn_.append(end, above);
  }
  drawn_.append(sm_count_, 0);
}

// Among SMs with the same room, the first ones get one more.
void BlockPlacer::draw_evenly(std::uint64_t blocks) {
  const auto per_sm = static_cast<std::uint32_t>(blocks / sm_count_);
  drawn_.restart();
  drawn_.append(static_cast<std::uint32_t>(blocks % sm_count_), per_sm + 1);
  drawn_.append(sm_count_, per_sm);
}

}  // namespace bubblesim::gpu

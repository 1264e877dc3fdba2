#include "sim/gpu/sm_blocks.hpp"

namespace bubblesim::gpu {

SmBlocks::SmBlocks(const hardware::GpuSpec& spec, std::size_t most_moves)
    : placer_(spec), helds_(spec.sm_count), footprints_(spec.sm_count), memo_(most_moves) {}

std::uint64_t SmBlocks::find_room(const Kernel& kernel, std::uint64_t most) {
  found_ = ask({Move::Kind::kCome, held_, kernel.placed, kernel.passed_over,
                load_of(kernel.needs), kernel.sms, kernel.needs.blocks_per_sm, most});
  return found_.blocks;
}

void SmBlocks::give(const Kernel& kernel, FootprintId& placed, std::uint64_t blocks) {
  become(ask({Move::Kind::kLeave, held_, placed, kernel.passed_over, load_of(kernel.needs), {},
              kernel.needs.blocks_per_sm, blocks}),
         placed);
}

void SmBlocks::give_all(const program::Residency& needs, FootprintId& placed) {
  become(ask({Move::Kind::kLeaveAll, held_, placed, {}, load_of(needs), {}}), placed);
}

HeldId SmBlocks::add(HeldId held, const program::Residency& needs, FootprintId placed) {
  helds_.replace(sum_, ask({Move::Kind::kAdd, held, placed, {}, load_of(needs), {}}).held);
  return sum_;
}

const Moved& SmBlocks::work_out(const Move& move) {
  if (memo_.full()) {
    memo_.clear();
    helds_.forget_others();
    footprints_.forget_others();
  }
  return memo_.put(move, calculate(move));
}

Moved SmBlocks::calculate(const Move& move) {
  const Held& held = helds_[move.held];
  const Footprint& placed = footprints_[move.placed];
  const BlockPlacer::Kernel kernel{move.block, move.blocks_per_sm, placed, move.sms,
                                   helds_[move.passed_over]};
  const auto come = [&move](SmLoad& sm, std::uint32_t blocks) { sm += move.block * blocks; };
  const auto leave = [&move](SmLoad& sm, std::uint32_t blocks) { sm -= move.block * blocks; };
  std::uint64_t came = 0;
  switch (move.kind) {
    case Move::Kind::kCome:
      came = placer_.find_room(held, kernel, move.most);
      held_then_.become_changed(held, placer_.drawn(), come);
      placed_then_.become_changed(placed, placer_.drawn(),
                                  [](std::uint32_t& sm, std::uint32_t more) { sm += more; });
      break;
    case Move::Kind::kLeave:
      placer_.choose_leavers(held, kernel, move.most);
      held_then_.become_changed(held, placer_.drawn(), leave);
      placed_then_.become_changed(placed, placer_.drawn(),
                                  [](std::uint32_t& sm, std::uint32_t less) { sm -= less; });
      break;
    case Move::Kind::kLeaveAll:
      held_then_.become_changed(held, placed, leave);
      placed_then_ = footprints_[FootprintId{}];
      break;
    case Move::Kind::kAdd:
      held_then_.become_changed(held, placed, come);
      placed_then_ = placed;
      break;
  }
  return {came, helds_.id_of(held_then_), footprints_.id_of(placed_then_)};
}

}  // namespace bubblesim::gpu

#include "sim/pipeline/generators/dual_steps.hpp"

#include "sim/pipeline/generators/rank_list.hpp"

namespace bubblesim::pipeline {
namespace {

class DualList {
 public:
  DualList(const StageGraph& graph, const DualRank& rank)
      : list_(graph),
        a_(rank.near_stage),
        b_(rank.far_stage),
        from_turn_(rank.ranks - rank.rank - 1),
        to_entry_(rank.rank + 1),
        main_(rank.micro_batches - 2 * rank.ranks + rank.rank + 1) {}

  std::vector<Action> make() {
    warm_up();
    for (std::uint32_t i = 0; i < main_; ++i) main_round(i);
    for (std::uint32_t i = 0; i < from_turn_; ++i) {
      list_.backward(b_);
      list_.overlapped(b_, a_);
    }
    last_backwards();
    for (std::uint32_t i = 0; i < from_turn_; ++i) {
      list_.weight_grad();
      list_.input_grad(a_);
    }
    for (std::uint32_t i = 0; i < to_entry_; ++i) list_.weight_grad();
    return list_.take();
  }

 private:
  void warm_up() {
    for (std::uint32_t i = 0; i < 2 * from_turn_; ++i) list_.forward(a_);
    for (std::uint32_t i = 0; i < to_entry_; ++i) {
      list_.forward(a_);
      list_.forward(b_);
    }
    for (std::uint32_t i = 0; i < from_turn_; ++i) {
      list_.input_grad(b_);
      list_.weight_grad();
      list_.forward(b_);
    }
  }

  void main_round(std::uint32_t round) {
    if (round == 0 && from_turn_ == 0) {  // a smaller bubble than with the two overlapped
      list_.forward(a_);
      list_.backward(b_);
    } else {
      list_.overlapped(a_, b_);
    }
    list_.overlapped(b_, a_);
  }

  // 2(r+1) backwards, b and a in turn; the second r+1 of them leave their W for later.
  void last_backwards() {
    for (std::uint32_t i = 0; i < 2 * to_entry_; ++i) {
      const std::uint32_t stage = i % 2 == 0 ? b_ : a_;
      if (i < to_entry_) {
        list_.backward(stage);
      } else {
        list_.input_grad(stage);
      }
    }
  }

  RankList list_;
  std::uint32_t a_, b_;
  std::uint32_t from_turn_;  // R-r-1
  std::uint32_t to_entry_;   // r+1
  std::uint32_t main_;
};

}  // namespace

std::vector<Action> dual_actions(const StageGraph& graph, const DualRank& rank) {
  return DualList(graph, rank).make();
}

}  // namespace bubblesim::pipeline

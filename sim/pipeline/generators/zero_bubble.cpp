// Schedules that cut backwards in two and fill bubbles with weight gradients.
#include <algorithm>

#include "sim/pipeline/generators/generators.hpp"

namespace bubblesim::pipeline {
namespace {

// ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2). With k = 1 or 2, rank r of p issues, at its
// step x, F of micro-batch x, I of x - k(p-1-r) and W of x - k(p-1), each where there is one: k
// sets how many forwards a rank may be ahead of its input gradients, and W fills what is left.

PlannedSchedule handcrafted(const ScheduleRequest& request, std::uint32_t k) {
  PlannedSchedule plan =
      one_stage_a_rank(request, chain_graph(request.ranks, request.micro_batches));
  const std::uint32_t m = request.micro_batches;
  const std::uint32_t weight_delay = k * (request.ranks - 1);
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    RankList list(plan.graph);
    const std::uint32_t input_delay = k * (request.ranks - 1 - rank);
    for (std::uint32_t step = 0; step < m + weight_delay; ++step) {
      if (step < m) list.forward(rank);
      if (step >= input_delay && step - input_delay < m) list.input_grad(rank);
      if (step >= weight_delay) list.weight_grad();
    }
    plan.schedule.actions[rank] = list.take();
  }
  return plan;
}

}  // namespace

Result<PlannedSchedule> make_zb_h1(const ScheduleRequest& request) {
  return handcrafted(request, 1);
}

Result<PlannedSchedule> make_zb_h2(const ScheduleRequest& request) {
  return handcrafted(request, 2);
}

namespace {

// ZB-V (arXiv 2405.15362): rank r of p holds stage a = r and stage b = 2p-1-r. Steps as in
// PyTorch's ScheduleZBVZeroBubble, schedules.py: 2(p-r)-1 Fa; r times Fb Fa; p-r times Fb Ib Wb;
// then Fa Ia Wa Fb Ib Wb until all forwards are done; r times Ia Ib; p-r times Ia Wa; the W left,
// b's first. The rule is made for at least 2p-1 micro-batches; with fewer, those that are not
// there are left out.

class VList {
 public:
  VList(const StageGraph& graph, std::uint32_t ranks, std::uint32_t rank)
      : list_(graph), p_(ranks), r_(rank), a_(rank), b_(2 * ranks - 1 - rank) {}

  std::vector<Action> make() {
    for (std::uint32_t i = 0; i < 2 * (p_ - r_) - 1; ++i) list_.forward(a_);
    for (std::uint32_t i = 0; i < r_; ++i) {
      list_.forward(b_);
      list_.forward(a_);
    }
    for (std::uint32_t i = 0; i < p_ - r_; ++i) round_b();
    while (list_.has_forward(b_)) {
      if (list_.has_forward(a_)) list_.forward(a_);
      gradients(a_);
      round_b();
    }
    for (std::uint32_t i = 0; i < r_; ++i) {
      list_.input_grad(a_);
      list_.input_grad(b_);
    }
    for (std::uint32_t i = 0; i < p_ - r_; ++i) gradients(a_);
    for (std::uint32_t i = 0; i < r_; ++i) list_.weight_grad_of(b_);
    for (std::uint32_t i = 0; i < r_; ++i) list_.weight_grad_of(a_);
    return list_.take();
  }

 private:
  void gradients(std::uint32_t stage) {
    list_.input_grad(stage);
    list_.weight_grad_of(stage);
  }

  void round_b() {
    list_.forward(b_);
    gradients(b_);
  }

  RankList list_;
  std::uint32_t p_, r_, a_, b_;
};

}  // namespace

Result<PlannedSchedule> make_zb_v(const ScheduleRequest& request) {
  const std::uint32_t made_for = std::max(request.micro_batches, 2 * request.ranks - 1);
  const StageGraph full = chain_graph(2 * request.ranks, made_for);
  PlannedSchedule plan =
      two_stages_a_rank(request, chain_graph(2 * request.ranks, request.micro_batches));
  for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
    std::vector<Action> actions = VList(full, request.ranks, rank).make();
    std::erase_if(actions, [&](const Action& action) {
      return action.micro_batch >= request.micro_batches;
    });
    plan.schedule.actions[rank] = std::move(actions);
  }
  return plan;
}

}  // namespace bubblesim::pipeline

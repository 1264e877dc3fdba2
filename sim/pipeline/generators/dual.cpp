// Schedules whose micro-batches go through the ranks in both directions.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/pipeline/generators/generators.hpp"
#include "sim/pipeline/schedule.hpp"

namespace bubblesim::pipeline {
namespace {

// The eight steps that DualPipe and DualPipeV share (github.com/deepseek-ai/DualPipe, dualpipe.py
// and dualpipev.py): a rank has a near end `a` (its stage 0 side) and a far end `b`.

struct DualRank {
  std::uint32_t ranks;          ///< R: from the end where micro-batches enter to the turn
  std::uint32_t rank;           ///< r: distance from that end; R-1 is at the turn
  std::uint32_t near_stage;     ///< a: the stage on the way to the turn
  std::uint32_t far_stage;      ///< b: the stage on the way back, or the other direction's
  std::uint32_t micro_batches;  ///< M of each of the two stages; at least 2R
};

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

/// 1: 2(R-r-1) Fa. 2: (r+1) times Fa Fb. 3: (R-r-1) times Ib W Fb. 4: (M-2R+r+1) times Fa&Bb,
/// Fb&Ba; at the turn the first pair runs apart. 5: (R-r-1) times Bb, Fb&Ba. 6: (r+1) times Bb
/// Ba, the second half of these with I for B. 7: (R-r-1) times W Ia. 8: (r+1) W.
std::vector<Action> dual_actions(const StageGraph& graph, const DualRank& rank) {
  return DualList(graph, rank).make();
}

// DualPipe (github.com/deepseek-ai/DualPipe, dualpipe.py): micro-batches enter at both ends, the
// second half of them at rank p-1 into the second copy of the model. Stage p+i of the table is
// the second copy's stage i, on rank p-1-i. Ranks r and p-1-r do the same with roles swapped.

Result<void> check_plan(const ScheduleRequest& request) {
  const std::uint32_t p = request.ranks;
  const std::uint32_t m = request.micro_batches;
  if (p % 2 != 0) {
    return fail("dualpipe: found " + std::to_string(p) +
                " ranks; expected an even number; nearest: " +
                (p == 1 ? "" : std::to_string(p - 1) + " or ") + std::to_string(p + 1));
  }
  if (m % 2 == 0 && m >= 2 * p) return {};
  const std::string nearest =
      m < 2 * p ? std::to_string(2 * p) : std::to_string(m - 1) + " or " + std::to_string(m + 1);
  return fail("dualpipe: found " + std::to_string(m) + " micro-batches on " + std::to_string(p) +
              " ranks; expected an even number of at least " + std::to_string(2 * p) +
              "; nearest: " + nearest);
}

}  // namespace

Result<PlannedSchedule> make_dualpipe(const ScheduleRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check_plan(request));
  const std::uint32_t p = request.ranks;
  PlannedSchedule plan = two_stages_a_rank(request, two_way_graph(p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    const std::uint32_t first = rank;               // stage of the first direction
    const std::uint32_t second = 2 * p - 1 - rank;  // and of the second
    const bool near_first = rank < p / 2;
    plan.schedule.actions[rank] = dual_actions(
        plan.graph, {p / 2, std::min(rank, p - 1 - rank), near_first ? first : second,
                     near_first ? second : first, request.micro_batches / 2});
  }
  return plan;
}

// DualPipeV (github.com/deepseek-ai/DualPipe, dualpipev.py; PyTorch's ScheduleDualPipeV): one
// copy of the model in 2p stages, rank r of p holding stages r and 2p-1-r.

Result<PlannedSchedule> make_dualpipev(const ScheduleRequest& request) {
  const std::uint32_t p = request.ranks;
  if (request.micro_batches < 2 * p) {
    return fail("dualpipev: found " + std::to_string(request.micro_batches) +
                " micro-batches on " + std::to_string(p) + " ranks; expected at least " +
                std::to_string(2 * p) + "; nearest: " + std::to_string(2 * p));
  }
  PlannedSchedule plan = two_stages_a_rank(request, chain_graph(2 * p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    plan.schedule.actions[rank] = dual_actions(
        plan.graph, {p, rank, rank, 2 * p - 1 - rank, request.micro_batches});
  }
  return plan;
}

namespace {

// Chimera (Li and Hoefler, arXiv 2107.06925, section 3): half of the micro-batches flow down,
// half flow up through a second copy of the model (stage p+i of the table is its stage i, on rank
// p-1-i). In units of p micro-batches with F = B = 1, the k-th of a direction runs stage s forward
// at time s + 2k and backward at 2p-1-s + 2k: the two directions never meet, and units follow one
// another every 2p ("direct concatenation"). Only the order that results is kept.

using TimedAction = std::pair<std::uint64_t, Action>;

Result<void> check_even(const char* what, std::uint32_t found) {
  if (found % 2 == 0) return {};
  return fail("chimera: found " + std::to_string(found) + " " + what +
              "; expected an even number; nearest: " +
              (found == 1 ? "" : std::to_string(found - 1) + " or ") +
              std::to_string(found + 1));
}

// `local` is the stage within its direction's copy.
void add_stage(const PlannedSchedule& plan, std::uint32_t stage, std::uint32_t local,
               std::vector<TimedAction>& timed) {
  const std::uint64_t p = plan.schedule.ranks;
  const StageNode& node = plan.graph.stages[stage];
  for (std::uint32_t i = 0; i < node.micro_batches; ++i) {
    const std::uint64_t unit = i / (p / 2);
    const std::uint64_t entry = 2 * p * unit + 2 * (i % (p / 2));
    const std::uint32_t micro_batch = node.first_micro_batch + i;
    timed.push_back({entry + local, forward(stage, micro_batch)});
    timed.push_back({entry + 2 * p - 1 - local, backward(stage, micro_batch)});
  }
}

}  // namespace

Result<PlannedSchedule> make_chimera(const ScheduleRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check_even("ranks", request.ranks));
  BUBBLESIM_RETURN_IF_ERROR(check_even("micro-batches", request.micro_batches));
  const std::uint32_t p = request.ranks;
  PlannedSchedule plan = two_stages_a_rank(request, two_way_graph(p, request.micro_batches));
  for (std::uint32_t rank = 0; rank < p; ++rank) {
    std::vector<TimedAction> timed;
    add_stage(plan, rank, rank, timed);
    add_stage(plan, 2 * p - 1 - rank, p - 1 - rank, timed);
    std::stable_sort(timed.begin(), timed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const TimedAction& action : timed) plan.schedule.actions[rank].push_back(action.second);
  }
  return plan;
}

}  // namespace bubblesim::pipeline

#include "policies/dilu_rckm.hpp"

#include <algorithm>
#include <cmath>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

/// A language model's floor is compared at a tenth of its value (RCKM.c).
constexpr double kLanguageModelFloor = 0.1;

}  // namespace

std::size_t DiluRckm::connect(const RckmTask& task) {
  BurstRule rule = constants_.burst;
  if (task.kind == RckmTask::Kind::kLanguageModel) rule.cut = constants_.llm_cut;
  tasks_.push_back({.is = task, .history = BurstHistory(rule)});
  sum_shares();
  return tasks_.size() - 1;
}

void DiluRckm::disconnect(std::size_t task) {
  tasks_[task].connected = false;
  sum_shares();
  if (tasks_[task].is.kind == RckmTask::Kind::kThrottled) return;
  quota_ = (1 - high_requests_) * constants_.upper_blocks;
  pool_ = quota_ * low_limits_;
}

/// Summed anew in order, so no rounding accumulates.
void DiluRckm::sum_shares() {
  high_requests_ = low_requests_ = low_limits_ = 0;
  for (const Task& task : tasks_) {
    if (!task.connected) continue;
    if (task.is.kind != RckmTask::Kind::kThrottled) {
      high_requests_ += task.is.request;
    } else {
      low_requests_ += task.is.request;
      low_limits_ += task.is.limit;
    }
  }
}

std::int64_t DiluRckm::report(std::size_t index, std::int64_t blocks) {
  Task& task = tasks_[index];
  if (task.is.kind == RckmTask::Kind::kThrottled)
    uncleared_ = blocks > 0;
  else
    watch(task, blocks);
  return grant(index);
}

std::int64_t DiluRckm::grant(std::size_t index) {
  const Task& task = tasks_[index];
  if (task.is.kind != RckmTask::Kind::kThrottled) return grant_sensitive(task);
  // A block a period at least: without grants a debt would never end.
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(pool_ * task.is.request / low_requests_));
}

void DiluRckm::watch(Task& task, std::int64_t blocks) {
  if (blocks > 0) {
    if (task.burst == 0) task.zeros = 0;
    ++task.burst;
    return;
  }
  if (task.burst > 0) end_burst(task);
  task.burst = 0;
  ++task.zeros;
}

/// Without a reference the code's inflation is 0, which lets the quota recover.
void DiluRckm::end_burst(Task& task) {
  task.history.add(task.burst);
  const bool llm = task.is.kind == RckmTask::Kind::kLanguageModel;
  const std::int64_t shortest = task.history.shortest();
  const std::int64_t reference = llm && shortest > 0 ? task.history.shortest_recent() : shortest;
  const double inflation =
      shortest > 0 ? static_cast<double>(task.burst) / static_cast<double>(reference) : 0;
  switch (task.history.react(inflation)) {
    case BurstHistory::Reaction::kKeep:
      return;
    case BurstHistory::Reaction::kCut: {
      const double floor = constants_.upper_blocks * low_requests_ * constants_.floor_share;
      const double cut = std::trunc(quota_ / inflation);
      quota_ = floor * (llm ? kLanguageModelFloor : 1) > cut ? floor : cut;
      return;
    }
    case BurstHistory::Reaction::kRecover:
      quota_ = std::min(constants_.upper_blocks, std::trunc(quota_ * constants_.recover_factor));
  }
}

std::int64_t DiluRckm::grant_sensitive(const Task& task) {
  bool all_idle = true;
  bool busy_peer = false;
  for (const Task& other : tasks_) {
    if (!other.connected || other.is.kind == RckmTask::Kind::kThrottled) continue;
    if (other.zeros <= constants_.busy_peer) {
      busy_peer = true;  // the service itself counts, too; the limits may still count
    } else if (other.zeros <= constants_.all_idle) {
      all_idle = false;
      break;  // as in the code: later processes are not looked at
    }
  }
  if (task.zeros <= constants_.conservative) {
    pool_ = quota_ * low_requests_;
  } else if (all_idle) {
    quota_ = constants_.upper_blocks;
    pool_ = quota_ * low_limits_;
  }
  const double share = uncleared_ || busy_peer ? task.is.request : task.is.limit;
  return static_cast<std::int64_t>(constants_.upper_blocks * share);
}

RckmConstants rckm_constants(const policy::ParameterSet& given) {
  const double upper = static_cast<double>(given.integer("upper_blocks"));
  return {.upper_blocks = upper,
          .initial_blocks = upper * given.number("initial_share"),
          .floor_share = given.number("floor_share"),
          .conservative = given.integer("conservative_until"),
          .busy_peer = given.integer("busy_until"),
          .all_idle = given.integer("idle_after"),
          .burst = burst_rule(given),
          .recover_factor = given.number("recover_factor"),
          .llm_cut = given.number("llm_inflation_cut")};
}

std::vector<policy::ParameterSpec> rckm_parameters() {
  using namespace policy;
  const std::string rckm = "Dilu RCKM.c";
  return {
      declare_integer("upper_blocks", 10'000'000, 1, 1'000'000'000'000,
                      {"blocks", "Tokens of a whole GPU a period; not scaled with the period.",
                       rckm + ": UPPER_LIMIT"}),
      declare_number("initial_share", 0.1, 0, 1,
                     {"", "The conservative quota at the start, as a share of upper_blocks.",
                      rckm + ": CONSERVATIVE_LIMIT"}),
      declare_number("floor_share", 0.01, 0, 1,
                     {"",
                      "What a cut leaves at least, as a share of upper_blocks times the requests "
                      "of throttled processes.",
                      rckm + ": CONTROL_FACTOR"}),
      declare_integer("conservative_until", 100, 0, 1'000'000,
                      {"periods",
                       "While a sensitive process is idle no longer, the conservative quota "
                       "counts.",
                       rckm + ": WINDOW_SIZE"}),
      declare_integer("busy_until", 10, 0, 1'000'000,
                      {"periods", "A sensitive process idle no longer counts as busy.", rckm}),
      declare_integer("idle_after", 120, 0, 1'000'000,
                      {"periods", "Sensitive processes idle longer: the limits count.", rckm}),
      declare_number("llm_inflation_cut", 1.3, 0, 1000,
                     {"",
                      "From this inflation on a language model's burst divides the quota by it.",
                      rckm + ": OVERFLOW_RATE_DLLM"}),
  };
}

}  // namespace bubblesim::policies

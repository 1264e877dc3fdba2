#include "policies/specinf_rckm_tokens.hpp"

#include <algorithm>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

// With `reaction: iterations`; reconstructed, as no source has such a reaction.
constexpr double kSlowdownRecover = 0.02;  ///< an iteration longer by at most this raises the quota
constexpr double kSlowdownCut = 0.05;      ///< one longer by more cuts it
constexpr double kSlowdownDivisor = 2;     ///< by this

}  // namespace

void SpecInfRckmTokens::end_window(Window window) {
  if (window == Window::kBusy) {
    empty_ = 0;
    ++busy_;
    return;
  }
  ++empty_;
  if (busy_ > 0) end_burst();
  busy_ = 0;
  if (constants_.aggressive_resets && phase() == Phase::kAggressive) {
    quota_ = constants_.upper_blocks;
  }
}

void SpecInfRckmTokens::end_burst() {
  history_.add(busy_);
  const std::int64_t reference =
      constants_.recent_reference ? history_.shortest_recent() : history_.shortest();
  if (!constants_.reacts_to_bursts || reference == 0) return;
  const double inflation = static_cast<double>(busy_) / static_cast<double>(reference);
  switch (history_.react(inflation)) {
    case BurstHistory::Reaction::kCut:
      return cut(inflation);
    case BurstHistory::Reaction::kRecover:
      return recover();
    case BurstHistory::Reaction::kKeep:
      return;
  }
}

void SpecInfRckmTokens::end_iteration(Duration length, Duration reference) {
  if (constants_.reacts_to_bursts) return;
  if (length > scale(reference, 1 + kSlowdownCut))
    cut(kSlowdownDivisor);
  else if (length <= scale(reference, 1 + kSlowdownRecover))
    recover();
}

void SpecInfRckmTokens::cut(double divisor) {
  quota_ = std::max(constants_.upper_blocks * constants_.floor_share, quota_ / divisor);
}

void SpecInfRckmTokens::recover() {
  quota_ = std::min(constants_.upper_blocks, quota_ * constants_.recover_factor);
}

SpecInfRckmTokens::Phase SpecInfRckmTokens::phase() const {
  if (empty_ >= constants_.aggressive_after) return Phase::kAggressive;
  if (empty_ >= constants_.conservative_after) return Phase::kConservative;
  return Phase::kBusy;
}

double SpecInfRckmTokens::tokens(policy::Role role) const {
  switch (phase()) {
    case Phase::kAggressive:
      return constants_.upper_blocks * constants_.filler_limit;
    case Phase::kConservative:
      return quota_ * constants_.filler_request;
    case Phase::kBusy:
      break;
  }
  // Reconstructed: offline fillers get none, where RCKM grants the conservative quota even then.
  const bool granted = role == policy::Role::kOnline && constants_.online_while_busy;
  return granted ? quota_ * constants_.filler_request : 0;
}

SpecInfRckmConstants specinf_rckm_constants(const policy::ParameterSet& given) {
  return {.conservative_after = given.integer("conservative_after"),
          .aggressive_after = given.integer("aggressive_after"),
          .upper_blocks = static_cast<double>(given.integer("upper_blocks")),
          .initial_share = given.number("initial_share"),
          .floor_share = given.number("floor_share"),
          .filler_request = given.number("filler_request"),
          .filler_limit = given.number("filler_limit"),
          .online_while_busy = given.text("online_while_busy") == "conservative",
          .reacts_to_bursts = given.text("reaction") == "bursts",
          .burst = burst_rule(given),
          .recover_factor = given.number("recover_factor"),
          .recent_reference = given.text("burst_reference") == "recent",
          .aggressive_resets = given.flag("aggressive_resets")};
}

std::vector<policy::ParameterSpec> specinf_rckm_token_parameters() {
  using namespace policy;
  const std::string rckm = "Dilu RCKM.c, roles mirrored";
  const std::string ours = "reconstructed: ";
  return {
      declare_integer("conservative_after", 1, 1, 100000,
                      {"windows",
                       "Consecutive empty windows until fillers get conservative "
                       "tokens.",
                       rckm}),
      declare_integer("aggressive_after", 4, 1, 100000,
                      {"windows", "Consecutive empty windows until fillers get all tokens.",
                       ours + "RCKM waits 120 windows (0.6 s), longer than training's bubbles"}),
      declare_integer("upper_blocks", 10'000'000, 1, 1'000'000'000'000,
                      {"blocks", "Tokens of a whole GPU a window; not scaled with the window.",
                       rckm + ": UPPER_LIMIT a 5 ms window"}),
      declare_number(
          "initial_share", 0.1, 0, 1,
          {"", "The conservative quota at the start, as a share of upper_blocks.", rckm}),
      declare_number("floor_share", 0.01, 0, 1,
                     {"", "The conservative quota's floor, as a share of upper_blocks.", rckm}),
      declare_number("filler_request", 0.3, 0, 1,
                     {"", "A filler's share of the conservative quota.",
                      ours + "Dilu deploys RoBERTa-large with request 0.3"}),
      declare_number("filler_limit", 0.6, 0, 1,
                     {"", "A filler's share of upper_blocks in the aggressive phase.",
                      ours + "Dilu deploys RoBERTa-large with limit 0.6"}),
      declare_choice("online_while_busy", {"conservative", "none"},
                     {"", "Tokens of online fillers while training launches.",
                      ours + "RCKM grants the conservative quota even then"}),
      declare_choice("reaction", {"bursts", "iterations"},
                     {"",
                      "What moves the conservative quota: the inflation of training's bursts, or "
                      "its iterations' lengths against those without fillers.",
                      ours + "bursts as in RCKM; the abstract says that throughput is guaranteed"}),
      declare_choice("burst_reference", {"all_time", "recent"},
                     {"",
                      "Inflation is the burst's length over the shortest of all time, or of "
                      "the last bursts (RCKM: for language models).",
                      rckm}),
      declare_flag(
          "aggressive_resets", false,
          {"", "The aggressive phase restores the whole quota.",
           ours + "RCKM does so after 0.6 s; within short bubbles it would undo each cut"}),
  };
}

}  // namespace bubblesim::policies

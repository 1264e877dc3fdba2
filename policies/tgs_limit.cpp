#include "policies/tgs_limit.hpp"

#include <algorithm>
#include <cmath>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

/// The greatest limit (UPPER_LIMIT in the source).
constexpr std::int64_t kHighestLimit = 100'000'000'000'000;

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

}  // namespace

void TgsLimit::report(std::uint64_t training_blocks, std::int64_t filler_rate) {
  const double rate = std::max(1.0, static_cast<double>(training_blocks));
  const double window_rate = shift_window(rate);
  if (phase_ == Phase::kProfile)
    profile(window_rate);
  else
    control(rate, window_rate, filler_rate);
}

/// The best mean of two adjacent reports, before the new one joins them.
double TgsLimit::shift_window(double rate) {
  double best = 0;
  for (std::size_t i = window_.size() - 1; i > 0; --i) {
    best = std::max(best, (window_[i] + window_[i - 1]) / 2);
    window_[i] = window_[i - 1];
  }
  window_[0] = rate;
  return best;
}

/// If no rate is known, 0/0 counts as a fall, as in the source's comparisons.
void TgsLimit::follow(double window_rate, double deviation) {
  if (deviation > 0)
    best_ = std::max(best_, window_rate * (1 - constants_.profile_margin));
  else
    best_ = std::min(best_, window_rate * (1 + constants_.profile_margin));
}

void TgsLimit::profile(double window_rate) {
  const double deviation = (window_rate - best_) / best_;
  if (std::abs(deviation) <= constants_.profile_tolerance) {
    best_ = std::max(best_, window_rate);
    // The source truncates the difference: less than a block counts as none.
    profile_again_ = best_ - window_rate < 1;
  } else {
    follow(window_rate, deviation);
    profile_again_ = true;
  }
  ++profiled_;
  const bool settled = profiled_ >= constants_.profile_reports && !profile_again_;
  if (settled || profiled_ >= constants_.profile_longest) phase_ = Phase::kControl;
}

void TgsLimit::control(double rate, double window_rate, std::int64_t filler_rate) {
  const double deviation = (window_rate - best_) / best_;
  if (std::abs(deviation) <= constants_.drift_tolerance) {
    best_ = std::max(best_, window_rate);
  } else if (std::abs(deviation) > constants_.reprofile_tolerance) {
    follow(window_rate, deviation);
    phase_ = Phase::kProfile;
    profiled_ = 0;
    return;  // the limit keeps its value during the profile
  }
  if (++controlled_ == 1) return restart(constants_.initial_limit);
  const auto idle = std::ranges::count_if(
      window_, [this](double r) { return r < static_cast<double>(constants_.idle_blocks); });
  if (idle > constants_.idle_reports && controlled_ >= constants_.adaptive_reports) {
    restart(cap(constants_.limit_cap, filler_rate));
  } else if (idle == constants_.idle_reports && controlled_ > constants_.adaptive_reports) {
    restart(constants_.initial_limit);
  } else {
    update(rate, filler_rate);
  }
}

void TgsLimit::update(double rate, std::int64_t filler_rate) {
  const double best = best_;
  const double deviation = std::abs(rate - best) / best;  // a faster training is a deviation, too
  if (state_ == State::kAvoidance) {
    avoid(deviation, best, filler_rate);
  } else if (deviation <= constants_.tolerance) {
    const double grown = static_cast<double>(limit_) * constants_.growth + 1;
    limit_ = std::min(whole(grown), cap(constants_.slow_start_cap, filler_rate));
  } else {
    limit_ = whole(static_cast<double>(limit_) / constants_.growth);
    last_step_up_ = false;
    state_ = State::kAvoidance;
  }
  count_missed(deviation);
  limit_ = std::max<std::int64_t>(limit_, 0);
}

void TgsLimit::avoid(double deviation, double best, std::int64_t filler_rate) {
  const bool harmless =
      last_step_up_ ? deviation < constants_.tolerance : deviation <= constants_.tolerance;
  if (harmless) {
    limit_ += std::max(whole(best * constants_.additive_share), constants_.least_step);
  } else {
    const double step = static_cast<double>(limit_) * constants_.decrease;
    limit_ -= std::max(whole(step), constants_.least_step);
  }
  limit_ = std::min(limit_, cap(constants_.limit_cap, filler_rate));
  last_step_up_ = harmless;
  if (deviation >= constants_.severe_deviation) {
    state_ = State::kSlowStart;
    limit_ /= constants_.severe_divisor;
  }
}

/// A best rate that training does not reach again is lowered step by step.
void TgsLimit::count_missed(double deviation) {
  if (deviation < constants_.missed_deviation) {
    missed_ = 0;
  } else if (++missed_ >= constants_.missed_reports) {
    best_ *= constants_.missed_factor;
    missed_ = 0;
    state_ = State::kSlowStart;
    limit_ /= 2;
  }
}

void TgsLimit::restart(std::int64_t limit) {
  limit_ = limit;
  state_ = State::kSlowStart;
}

std::int64_t TgsLimit::cap(std::int64_t constant, std::int64_t filler_rate) const {
  return std::min(kHighestLimit, std::max(3 * filler_rate, constant));
}

TgsConstants tgs_constants(const policy::ParameterSet& given) {
  return {.report_window = given.integer("report_window"),
          .profile_reports = given.integer("profile_reports"),
          .profile_longest = given.integer("profile_longest"),
          .profile_tolerance = given.number("profile_tolerance"),
          .profile_margin = given.number("profile_margin"),
          .drift_tolerance = given.number("drift_tolerance"),
          .reprofile_tolerance = given.number("reprofile_tolerance"),
          .initial_limit = given.integer("initial_limit"),
          .idle_blocks = given.integer("idle_blocks"),
          .idle_reports = given.integer("idle_reports"),
          .adaptive_reports = given.integer("adaptive_reports"),
          .tolerance = given.number("tolerance"),
          .growth = given.number("growth"),
          .additive_share = given.number("additive_share"),
          .least_step = given.integer("least_step"),
          .decrease = given.number("decrease"),
          .severe_deviation = given.number("severe_deviation"),
          .severe_divisor = given.integer("severe_divisor"),
          .missed_deviation = given.number("missed_deviation"),
          .missed_reports = given.integer("missed_reports"),
          .missed_factor = given.number("missed_factor"),
          .slow_start_cap = given.integer("slow_start_cap"),
          .limit_cap = given.integer("limit_cap")};
}

std::vector<policy::ParameterSpec> tgs_limit_parameters() {
  using policy::declare_integer;
  using policy::declare_number;
  constexpr std::int64_t kMost = 1'000'000'000'000;
  const std::string manager = "TGS code, limit_manager";
  const std::string update = "TGS code, update_rate_limit";
  return {
      declare_integer("report_window", 5, 2, 1000,
                      {"reports", "Reports whose adjacent means give the best rate.", manager}),
      declare_integer("profile_reports", 5, 1, 1000,
                      {"reports", "Least length of a profile; the limit does not move.", manager}),
      declare_integer("profile_longest", 5, 1, 100000,
                      {"reports",
                       "Greatest length of a profile; the code has none, and never ends "
                       "it while the rate is exactly steady.",
                       "XSched's artifact, sys/tgs: a steady rate ends it; its log on a GV100"}),
      declare_number("profile_tolerance", 0.05, 0, 1,
                     {"", "The profiled rate counts as settled within this.", manager}),
      declare_number("profile_margin", 0.025, 0, 1,
                     {"", "Kept below a rise of the rate and above a fall.", manager}),
      declare_number("drift_tolerance", 0.1, 0, 10,
                     {"", "Within this the best rate is followed up during control.", manager}),
      declare_number("reprofile_tolerance", 0.2, 0, 10,
                     {"", "Beyond this the profile starts again.", manager}),
      declare_integer("initial_limit", 20000, 0, kMost,
                      {"blocks", "The limit a window where slow start begins.", manager}),
      declare_integer("idle_blocks", 1000, 0, kMost,
                      {"blocks", "A report below this counts as idle.", manager}),
      declare_integer("idle_reports", 2, 0, 1000,
                      {"reports",
                       "More idle reports than this in the window lift the limit; just "
                       "so many restart it.",
                       manager}),
      declare_integer("adaptive_reports", 15, 0, 100000,
                      {"reports", "Before so many reports the limit is never lifted.", manager}),
      declare_number("tolerance", 0.03, 0, 1,
                     {"", "Deviation from the best rate that counts as no harm.", update}),
      declare_number("growth", 1.5, 1, 100, {"", "Slow start's factor a report.", update}),
      declare_number("additive_share", 0.00025, 0, 1,
                     {"",
                      "Additive step as a share of the best rate a report; 2.5 % of its rate a "
                      "window at 100 windows a report.",
                      update}),
      declare_integer("least_step", 1000, 0, kMost,
                      {"blocks", "Least step of the limit, up or down.", update}),
      declare_number("decrease", 0.08, 0, 1, {"", "Multiplicative decrease.", update}),
      declare_number(
          "severe_deviation", 0.09, 0, 10,
          {"", "From here on avoidance divides the limit and starts slowly again.", update}),
      declare_integer("severe_divisor", 10, 1, 1000000, {"", "By this.", update}),
      declare_number("missed_deviation", 0.12, 0, 10,
                     {"", "A report this far off the best rate misses it.", update}),
      declare_integer("missed_reports", 20, 1, 100000,
                      {"reports", "So many misses in a row shrink the best rate.", update}),
      declare_number("missed_factor", 0.8, 0.01, 1, {"", "By this factor.", update}),
      declare_integer("slow_start_cap", std::int64_t{1} << 40, 1, std::int64_t{1} << 46,
                      {"blocks",
                       "Highest limit of slow start, unless 3 times the filler's rate is "
                       "more.",
                       update}),
      declare_integer(
          "limit_cap", std::int64_t{1} << 32, 1, std::int64_t{1} << 46,
          {"blocks", "Highest limit of avoidance, and the limit while training is idle.", update}),
  };
}

}  // namespace bubblesim::policies

#include "sim/run/node_power.hpp"

#include <algorithm>

namespace bubblesim::run {

NodePower::NodePower(const hardware::GpuSpec& spec, const PowerConfig& config, SimTime warmup)
    : power_(spec.power), cap_w_(*config.node_cap_w), period_(config.period), warmup_(warmup) {}

void NodePower::add(GpuPower& gpu) {
  gpus_.push_back(&gpu);
  gpu.share_budget(*this);
}

void NodePower::advance(SimTime now) {
  for (; period_start_ + period_ <= now; period_start_ += period_) {
    for (GpuPower* gpu : gpus_) gpu->pass(period_start_ + period_);
    end_period();
  }
}

double NodePower::mean_w() const {
  double sum = 0;
  for (const GpuPower* gpu : gpus_) sum += gpu->use().mean_w;
  return sum;
}

// The idle power of all GPUs but one is taken off the budget: clock_under() counts that of one.
void NodePower::end_period() {
  PeriodWork work;
  for (const GpuPower* gpu : gpus_) work += gpu->last_period();
  if (period_start_ >= warmup_ && at_lowest_clock_ && work.mean_w > cap_w_ + kCapTolerance) {
    ++periods_over_cap_;
    over_cap_w_ = std::max(over_cap_w_, work.mean_w);
  }
  const double others_idle_w = power_.idle_w * static_cast<double>(gpus_.size() - 1);
  const double clock = hardware::clock_under(power_, cap_w_ - others_idle_w, work.fixed_w,
                                             work.following_w);
  at_lowest_clock_ = is_lowest_clock(power_, clock);
  for (GpuPower* gpu : gpus_) gpu->limit_clock(clock);
}

}  // namespace bubblesim::run

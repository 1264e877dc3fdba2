#include "sim/run/gpu_power.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::run {
namespace {

constexpr double kMilli = 1e3;
constexpr double kParts = 1e6;
/// Powers are rounded to milliwatts, client by client, so that a cap is kept only to within this
/// many watts.
constexpr double kCapTolerance = 0.01;

/// Watts on all SMs, and the part of them that follows the clock.
struct ClassDraw {
  double watts;
  double following;
};

ClassDraw draw_of_class(program::KernelClass kernel_class, const hardware::PowerSpec& power) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return {power.compute_kernel_w, 1};
    case program::KernelClass::kMemory: return {power.memory_kernel_w, power.memory_clock_share};
    case program::KernelClass::kUnknown: break;
  }
  return {power.unknown_kernel_w, 1};
}

std::int64_t milliwatts(double watts) { return std::llround(watts * kMilli); }

std::int64_t kilohertz(double mhz) { return std::llround(mhz * kMilli); }

/// Mean over a span of what was added to the sum.
double mean(const EnergySum& sum, Duration span) {
  return span == Duration::zero() ? 0 : sum.joules() / to_seconds(span);
}

/// Whether no lower step exists.
bool is_lowest_clock(const hardware::PowerSpec& power, double mhz) {
  return mhz < hardware::lowest_clock(power) + power.clock_step_mhz / 2;
}

OpDraw draw_of(const program::Program& program, std::uint32_t index,
               const hardware::GpuSpec& spec) {
  const program::Op& op = program.ops[index];
  const bool collective = op.kind == program::WorkKind::kCollective;
  const bool on_sms = collective || op.kind == program::WorkKind::kKernel;
  if (!on_sms || op.profile == program::kNoIndex) return {};
  const program::KernelProfile& profile = program.profiles[op.profile];
  const double cover =
      std::min(1.0, static_cast<double>(profile.blocks) / static_cast<double>(spec.sm_count));
  const ClassDraw draw = draw_of_class(
      collective ? program::KernelClass::kMemory : profile.kernel_class, spec.power);
  return {.following_mw = milliwatts(draw.watts * draw.following * cover),
          .fixed_mw = milliwatts(draw.watts * (1 - draw.following) * cover),
          .cover_ppm = std::llround(cover * kParts)};
}

}  // namespace

PeriodWork& PeriodWork::operator+=(const PeriodWork& other) {
  mean_w += other.mean_w;
  fixed_w += other.fixed_w;
  following_w += other.following_w;
  return *this;
}

void EnergySum::add(std::int64_t milliwatts, Duration time) {
  constexpr std::int64_t kPicojoules = 1'000'000'000'000;
  picojoules_ += milliwatts * time.count();
  joules_ += picojoules_ / kPicojoules;
  picojoules_ %= kPicojoules;
}

GpuPower::GpuPower(const hardware::GpuSpec& spec, const PowerConfig& config, SimTime warmup)
    : spec_(spec), config_(config), warmup_(warmup),
      mhz_(spec.clock * spec.power.full_clock_mhz) {
  set_draws();
}

void GpuPower::started(ClientId client, const program::Program& program, std::uint32_t op,
                       SimTime now) {
  change(client, draw_of(program, op, spec_), 1, now);
}

void GpuPower::ended(ClientId client, const program::Program& program, std::uint32_t op,
                     SimTime now) {
  change(client, draw_of(program, op, spec_), -1, now);
}

void GpuPower::change(ClientId client, const OpDraw& draw, int sign, SimTime now) {
  advance(now);
  if (client.index() >= clients_.size()) clients_.resize(client.index() + 1);
  OpDraw& running = clients_[client.index()].running;
  running.following_mw += sign * draw.following_mw;
  running.fixed_mw += sign * draw.fixed_mw;
  running.cover_ppm += sign * draw.cover_ppm;
  set_draws();
}

// Sets the power of what runs now, at the present clock.
void GpuPower::set_draws() {
  std::int64_t cover = 0;
  for (const Client& client : clients_) cover += client.running.cover_ppm;
  const double crowd = std::max(1.0, static_cast<double>(cover) / kParts);
  const double share = dynamic_share(spec_.power, mhz_);
  total_mw_ = milliwatts(spec_.power.idle_w);
  following_mw_ = fixed_mw_ = 0;
  for (Client& client : clients_) {
    const double following = static_cast<double>(client.running.following_mw) / crowd;
    const double fixed = static_cast<double>(client.running.fixed_mw) / crowd;
    client.draws_mw = std::llround(following * share + fixed);
    total_mw_ += client.draws_mw;
    following_mw_ += std::llround(following);
    fixed_mw_ += std::llround(fixed);
  }
}

void GpuPower::advance(SimTime now) {
  if (node_ != nullptr) node_->advance(now);
  pass(now);
}

// Stops at the end of each period, where the clock may change, and at that of the warm-up.
void GpuPower::pass(SimTime now) {
  while (last_ < now) {
    const SimTime period_end = period_start_ + config_.period;
    SimTime to = std::min(now, period_end);
    if (last_ < warmup_) to = std::min(to, warmup_);
    integrate(to);
    if (to == period_end) end_period();
  }
}

void GpuPower::integrate(SimTime to) {
  const Duration span = to - last_;
  const bool counts = last_ >= warmup_;
  period_energy_.add(total_mw_, span);
  period_following_.add(following_mw_, span);
  period_fixed_.add(fixed_mw_, span);
  interval_energy_.add(total_mw_, span);
  interval_clock_time_.add(kilohertz(mhz_), span);
  if (counts) {
    energy_.add(total_mw_, span);
    clock_time_.add(kilohertz(mhz_), span);
    for (Client& client : clients_) client.energy.add(client.draws_mw, span);
  }
  last_ = to;
}

// The clock is the same throughout a period, and the lowest one if no lower step is left.
bool GpuPower::misses_cap() const {
  return config_.cap_w && last_period_.mean_w > *config_.cap_w + kCapTolerance &&
         is_lowest_clock(spec_.power, mhz_);
}

void GpuPower::end_period() {
  last_period_ = {mean(period_energy_, config_.period), mean(period_fixed_, config_.period),
                  mean(period_following_, config_.period)};
  if (period_start_ >= warmup_) {
    peak_w_ = std::max(peak_w_, last_period_.mean_w);
    if (misses_cap()) {
      ++periods_over_cap_;
      over_cap_w_ = std::max(over_cap_w_, last_period_.mean_w);
    }
  }
  mhz_ = spec_.clock * spec_.power.full_clock_mhz;
  if (config_.cap_w) {
    mhz_ = std::min(mhz_, hardware::clock_under(spec_.power, *config_.cap_w, last_period_.fixed_w,
                                                last_period_.following_w));
  }
  set_draws();
  period_energy_ = period_following_ = period_fixed_ = {};
  period_start_ = last_;
}

void GpuPower::limit_clock(double mhz) {
  mhz_ = std::min(mhz_, mhz);
  set_draws();
}

observe::PowerUse GpuPower::use() const {
  observe::PowerUse use;
  const Duration window = std::max(Duration::zero(), last_ - warmup_);
  use.energy_j = energy_.joules();
  for (std::size_t i = 1; i < clients_.size(); ++i) use.filler_j += clients_[i].energy.joules();
  use.mean_w = mean(energy_, window);
  use.peak_w = std::max(peak_w_, use.mean_w);
  use.clock_mhz = mean(clock_time_, window);
  use.periods_over_cap = periods_over_cap_;
  use.over_cap_w = over_cap_w_;
  return use;
}

double GpuPower::energy_of(ClientId client) const {
  return client.index() < clients_.size() ? clients_[client.index()].energy.joules() : 0;
}

observe::UsagePower GpuPower::take_interval(SimTime now) {
  advance(now);
  const Duration span = now - interval_start_;
  const observe::UsagePower taken{mean(interval_energy_, span), mean(interval_clock_time_, span)};
  interval_energy_ = interval_clock_time_ = {};
  interval_start_ = now;
  return taken;
}

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

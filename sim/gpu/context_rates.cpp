// The rates of resident kernels beside each other.
#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/divide.hpp"
#include "sim/gpu/context.hpp"

namespace bubblesim::gpu {

// Kernels of one client go as fast as they were recorded, with the whole GPU's bandwidth and SMs.
bool Context::all_at_full_rate() const {
  return !mixed_ && contention_.bandwidth() >= 1 && leftover_ <= 0 && !shared_.confined;
}

// An SM is dark if no client with resident kernels may use it; with partitions, if it belongs to
// none.
void Context::note_lit() {
  lit_ = shared_.lit;
  if (!shared_.processes) return;
  double sms = 0;
  for (auto work = resident_.begin(); work != resident_.end(); ++work) {
    const ClientId client = shared_.works[*work].work.client;
    const bool known = std::any_of(resident_.begin(), work, [&](WorkId earlier) {
      return shared_.works[earlier].work.client == client;
    });
    const std::uint32_t cap = shared_.clients[client.index()].setup.sm_cap;
    if (!known) sms += std::min(cap, shared_.spec.sm_count);
  }
  lit_ = std::min(1.0, sms / shared_.spec.sm_count);
}

// A kernel occupies as many SMs as it can: blocks are spread before they are stacked. A kernel
// whose blocks all fit into its client's cap was recorded with its present clock.
Confinement Context::confinement_of(const WorkState& state) const {
  if (!shared_.confined) return {};
  if (state.sized_sms > 0) {
    const double sms = static_cast<double>(state.sized_sms) / shared_.spec.sm_count;
    return {sms, std::max(sms, lit_), 1};
  }
  const program::KernelProfile& profile = *state.work.profile;
  const std::uint64_t cap = shared_.clients[state.work.client.index()].setup.sm_cap;
  const std::uint64_t full = state.waves.full_wave();
  const std::uint64_t spread = std::min<std::uint64_t>(full, shared_.spec.sm_count);
  if (cap >= spread) return {};
  const std::uint64_t held = std::min(full, cap * profile.residency.blocks_per_sm);
  const double sms = static_cast<double>(cap) / static_cast<double>(spread);
  const double waves = static_cast<double>(divide_up(profile.blocks, full)) /
                       static_cast<double>(divide_up(profile.blocks, held));
  return {sms, held < full ? std::max(sms, lit_) : 1.0, waves / sms};
}

// A collective uses no shared resource until its peers have come and its end is known.
inline Demand Context::demand_of(const WorkState& state) const {
  if (state.work.kind == program::WorkKind::kCollective && state.end == SimTime::max()) return {};
  Demand demand = Contention::demand(*state.work.profile, state.waves.resident(),
                                     whole_wave(state), state.sm_share);
  if (shared_.confined) [[unlikely]] demand.dram /= memory_time_of(state);
  return demand;
}

double Context::memory_time_of(const WorkState& state) const {
  const Confinement confined = confinement_of(state);
  return contention_.memory_time(confined.sms) * confined.waves;
}

inline void Context::set_rate(WorkState& state, const Pressure& all, double own_dram) const {
  if (state.work.kind == program::WorkKind::kCollective) return;
  const bool on_all_sms = !shared_.confined && leftover_ <= 0;
  state.waves.set_rate(on_all_sms ? contention_.rate_on_all_sms(all, own_dram,
                                                                state.work.profile->kernel_class)
                                  : confined_rate(state, all, own_dram));
}

// The rate of a kernel that may use a part of the SMs.
double Context::confined_rate(const WorkState& state, const Pressure& all, double own_dram) const {
  const program::KernelProfile& profile = *state.work.profile;
  const double rate =
      contention_.rate(all, own_dram, profile.kernel_class, confinement_of(state));
  if (leftover_ <= 0) return rate;
  const double sms =
      static_cast<double>(state.waves.full_wave()) / profile.residency.blocks_per_sm;
  return rate * std::min(1.0, leftover_ / sms);
}

// Called once an instant, after all arrivals and ends of that instant. Usually two kernels are
// resident and none waits, which needs no sums by client.
SimTime Context::look_ahead(SimTime now) {
  std::optional<Duration> next;
  if (std::exchange(rates_due_, false)) {
    if (shared_.confined) note_lit();
    if (mixed_ && resident_.size() == 2) {
      const Duration first = set_rates_of_two(now);
      if (waiting_.empty() && arriving_.empty()) next = first;
    } else {
      set_rates();
    }
  }
  if (!next) next = next_event(now);
  return *next < SimTime::max() - now ? now + *next : SimTime::max();
}

void Context::set_rates() {
  if (all_at_full_rate()) {
    for (const WorkId id : resident_) {
      WorkState& state = shared_.works[id];
      if (state.work.kind == program::WorkKind::kKernel) state.waves.set_rate(1);
    }
    return;
  }
  demands_.clear();
  for (const WorkId id : resident_) {
    const WorkState& state = shared_.works[id];
    demands_.add(state.work.client, demand_of(state));
  }
  const Pressure all = contention_.pressure(demands_.total());
  for (const WorkId id : resident_) {
    WorkState& state = shared_.works[id];
    set_rate(state, all, demands_.demand_of(state.work.client).dram);
  }
}

// Returns the time until blocks of one of the two end, if no kernel waits.
inline Duration Context::set_rates_of_two(SimTime now) {
  WorkState& first = shared_.works[resident_[0]];
  WorkState& second = shared_.works[resident_[1]];
  const Demand a = demand_of(first).of_client();
  const Demand b = demand_of(second).of_client();
  const Pressure all = contention_.pressure({a.dram + b.dram, a.issue + b.issue});
  set_rate(first, all, a.dram);
  set_rate(second, all, b.dram);
  const bool kernels = first.work.kind == program::WorkKind::kKernel &&
                       second.work.kind == program::WorkKind::kKernel;
  if (!kernels) return next_event(now);
  return Waves::whole_ns(
      std::min(first.waves.left_to_first_end(), second.waves.left_to_first_end()));
}

}  // namespace bubblesim::gpu

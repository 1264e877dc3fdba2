// How a simulation's time passes: in stretches, at whose ends somebody may look at it. No event
// runs for that, and the GPUs run beside each other as they do without: only no window of theirs
// goes on beyond a stretch, which changes no result.
#include <algorithm>

#include "sim/base/units.hpp"
#include "sim/run/simulation.hpp"

namespace bubblesim::run {
namespace {

constexpr double kNsPerSecond = 1e9;

}  // namespace

Result<void> Simulation::run_until(SimTime last) {
  if (!records_usage()) return run_stretch(last);
  const observe::UsageGrid grid(scenario_.usage.interval, warmup_);
  SimTime next = grid.after(kSimStart);
  for (std::uint64_t count = 0; count < scenario_.usage.most && next < last; ++count) {
    if (!conductor_.next_due()) return {};
    BUBBLESIM_RETURN_IF_ERROR(run_stretch(next));
    if (conductor_.stopped()) return {};
    close_usage(next);
    next = grid.after(next);
  }
  return run_stretch(last);
}

// The stop is looked at between stretches of simulated time, which change nothing else; how far it
// is, is told there.
Result<void> Simulation::run_stretch(SimTime last) {
  constexpr Duration kStretch = std::chrono::milliseconds{100};
  while (scenario_.stop != nullptr || scenario_.passed_ns != nullptr) {
    if (scenario_.stop != nullptr && *scenario_.stop) {
      return fail("stopped at " + format_duration(conductor_.now() - kSimStart));
    }
    const std::optional<SimTime> next = conductor_.next_due();
    if (!next || *next > last || last - *next <= kStretch) break;
    conductor_.run_until(*next + kStretch);
    if (conductor_.stopped()) return {};
    note_passed(conductor_.now() - kSimStart);
  }
  conductor_.run_until(last);
  return {};
}

void Simulation::note_passed(Duration until) {
  if (scenario_.passed_ns == nullptr) return;
  until = std::min(until, scenario_.expected);
  if (until <= passed_) return;
  *scenario_.passed_ns += to_ns(until - passed_);
  passed_ = until;
}

void Simulation::close_usage(SimTime now) {
  for (const auto& node : nodes_) {
    node->usage->close(now, {.training_sm_ns = node->training_sm_seconds() * kNsPerSecond,
                             .filler_sm_ns = node->filler_sm_seconds() * kNsPerSecond,
                             .memory = node->memory_now() + placement_->workers_now(node->id)});
  }
}

// The last interval ends with the run, if the limit leaves room for it.
void Simulation::collect_usage(observe::PolicyResult& result) {
  if (!records_usage() || nodes_.empty()) return;
  const observe::UsageGrid grid(scenario_.usage.interval, warmup_);
  const std::uint64_t all = grid.count(end_);
  if (all <= scenario_.usage.most) close_usage(end_);
  for (const auto& node : nodes_) {
    result.usage.push_back({node->id, loaded_.device.sm_count, node->usage->take()});
  }
  const std::uint64_t kept = result.usage.front().intervals.size();
  if (all > kept) counters_.add(observe::kUsageIntervalsDropped, (all - kept) * nodes_.size());
}

}  // namespace bubblesim::run

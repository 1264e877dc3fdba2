#include "sim/run/unmet_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/hardware/power_spec.hpp"

namespace bubblesim::run {
namespace {

/// Work that grows a few times in a run lifts the mean above a cap by less than this share of it.
constexpr double kGrowth = 0.01;

/// Whether a mean exceeds a cap that a governor looked after, and not by what growth explains.
bool is_over(double mean_w, double cap_w, const PowerConfig& power, Duration simulated) {
  return mean_w > cap_w * (1 + kGrowth) && power.period < simulated;
}

/// Why it does.
std::string beat(const PowerConfig& power) {
  return fmt::format("the clock of each \"period\" of {} follows the work of the one before, and "
                     "the work changes as fast",
                     format_duration(power.period));
}

class Notes {
 public:
  Notes(const LoadedRun& run, Duration simulated, observe::PolicyResult& result)
      : training_(run.config.training), fillers_(run.config.fillers), power_(run.config.power),
        device_(run.device), simulated_(simulated), result_(result) {}

  void add() {
    too_late("faults", "strikes", training_.faults, &JobFault::at);
    too_late("stragglers", "begins", training_.stragglers, &Straggler::from);
    too_late("slow_links", "begins", training_.slow_links, &LinkFault::from);
    if (training_.checkpoint_every && training_.faults.empty()) {
      without_effect("/training/checkpoint_every: there are no \"faults\" to restart from");
    }
    for (std::size_t i = 0; i < fillers_.size(); ++i) {
      add_late_jobs(i);
      add_batching(i);
    }
    if (power_ && power_->cap_w) add_cap();
    if (power_ && power_->node_cap_w) check_period("node_cap_w");
  }

 private:
  void without_effect(const std::string& text) {
    result_.counters.add(kKeysWithoutEffect);
    result_.notices.push_back(text);
  }

  /// Entries of a list that begin when the run has ended.
  template <class Entry>
  void too_late(const char* key, const char* what, const std::vector<Entry>& entries,
                Duration Entry::*begin) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Duration at = entries[i].*begin;
      if (at < simulated_) continue;
      without_effect(fmt::format("/training/{}/{}: {} at {}, the run ended at {}", key, i, what,
                                 format_duration(at), format_duration(simulated_)));
    }
  }

  /// One note a filler: a job that is submitted again and again may have millions after the end.
  void add_late_jobs(std::size_t filler) {
    const std::vector<FillJobConfig>& jobs = fillers_[filler].jobs;
    std::size_t late = 0;
    Duration first = Duration::max();
    for (const FillJobConfig& job : jobs) {
      if (job.submitted < simulated_) continue;
      ++late;
      first = std::min(first, job.submitted);
    }
    if (late == 0) return;
    without_effect(fmt::format("/fillers/{}/jobs: {} of {} submitted at {} or later, the run ended "
                               "at {}",
                               filler, late, jobs.size(), format_duration(first),
                               format_duration(simulated_)));
  }

  void add_batching(std::size_t filler) {
    const std::vector<std::string>& unused = fillers_[filler].unused_batching;
    for (const std::string& key : unused) {
      without_effect(fmt::format("/fillers/{}/{}: with continuous batching requests join and leave "
                                 "between steps, \"batch\" of them at most",
                                 filler, key));
    }
    const program::Batching& batching = fillers_[filler].batching;
    if (!unused.empty() || batching.max_batch >= batching.requests_per_pass) return;
    result_.counters.add(kPassesPartlyFilled);
    result_.notices.push_back(fmt::format(
        "/fillers/{}/max_batch: a pass serves {} of the {} requests of \"requests_per_pass\"",
        filler, batching.max_batch, batching.requests_per_pass));
  }

  void check_period(const char* key) {
    if (power_->period < simulated_) return;
    without_effect(fmt::format("/power/{}: the governor first looks after its \"period\" of {}, "
                               "the run ended at {}",
                               key, format_duration(power_->period), format_duration(simulated_)));
  }

  void add_cap() {
    check_period("cap_w");
    const observe::GpuUse* worst = nullptr;
    for (const observe::GpuUse& gpu : result_.gpus) {
      if (!gpu.power || gpu.power->periods_over_cap == 0) continue;
      result_.counters.add(kPowerCapNotKept, gpu.power->periods_over_cap);
      if (worst == nullptr || gpu.power->over_cap_w > worst->power->over_cap_w) worst = &gpu;
    }
    if (worst == nullptr) {
      add_mean();
      return;
    }
    result_.notices.push_back(fmt::format(
        "/power/cap_w: the cap of {:g} W was not kept: GPU {} drew up to {:.1f} W at its lowest "
        "clock, {:g} MHz",
        *power_->cap_w, worst->gpu.value, worst->power->over_cap_w,
        hardware::lowest_clock(device_.power)));
  }

  void add_mean() {
    const observe::GpuUse* worst = nullptr;
    for (const observe::GpuUse& gpu : result_.gpus) {
      if (!gpu.power || !is_over(gpu.power->mean_w, *power_->cap_w, *power_, simulated_)) continue;
      result_.counters.add(kMeanOverCap);
      if (worst == nullptr || gpu.power->mean_w > worst->power->mean_w) worst = &gpu;
    }
    if (worst == nullptr) return;
    result_.notices.push_back(fmt::format(
        "/power/cap_w: the cap of {:g} W was not kept on average: GPU {} drew {:.1f} W; {}",
        *power_->cap_w, worst->gpu.value, worst->power->mean_w, beat(*power_)));
  }

  const TrainingConfig& training_;
  const std::vector<FillerConfig>& fillers_;
  const std::optional<PowerConfig>& power_;
  const hardware::GpuSpec& device_;
  Duration simulated_;
  observe::PolicyResult& result_;
};

}  // namespace

void note_unmet_config(const LoadedRun& run, Duration simulated, observe::PolicyResult& result) {
  Notes(run, simulated, result).add();
}

void note_unmet_budget(const LoadedRun& run, std::uint32_t node, const NodePower& power,
                       observe::PolicyResult& result) {
  const PowerConfig& config = *run.config.power;
  if (power.periods_over_cap() == 0) {
    if (!is_over(power.mean_w(), *config.node_cap_w, config, result.simulated)) return;
    result.counters.add(kMeanOverCap);
    result.notices.push_back(fmt::format(
        "/power/node_cap_w: the budget of {:g} W was not kept on average: the {} GPUs of node {} "
        "drew {:.1f} W; {}",
        *config.node_cap_w, power.gpus(), node, power.mean_w(), beat(config)));
    return;
  }
  result.counters.add(kPowerCapNotKept, power.periods_over_cap());
  result.notices.push_back(fmt::format(
      "/power/node_cap_w: the budget of {:g} W was not kept: the {} GPUs of node {} drew up to "
      "{:.1f} W at their lowest clock, {:g} MHz",
      *config.node_cap_w, power.gpus(), node, power.over_cap_w(),
      hardware::lowest_clock(run.device.power)));
}

}  // namespace bubblesim::run

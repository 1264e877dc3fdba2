// The golden job (tests/golden/filling/small_job.hpp: two ranks, 7 ms an iteration alone) with
// fillers of one 1 ms kernel on 50 SMs, loaded without files.
#pragma once

#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "tests/golden/filling/small_job.hpp"

namespace bubblesim::run {

using namespace std::chrono_literals;

/// A policy with its defaults. specinf gets a shorter reference, since these runs are short.
inline PolicyChoice choice(const std::string& name, const policy::Registry& registry) {
  const policy::PolicySpec& spec = **registry.find(name);
  const policy::GivenParameter brief{"reference", "200ms"};
  const std::size_t given = name == "specinf" ? 1 : 0;
  return {name, *policy::check_parameters(spec, {&brief, given}, "", "")};
}

inline FillerConfig offline(const std::string& name) {
  FillerConfig filler;
  filler.name = name;
  filler.memory = Bytes{1'000'000'000};
  return filler;
}

inline FillerConfig online(const std::string& name, double rate_per_s) {
  FillerConfig filler = offline(name);
  filler.mode = observe::FillerMode::kOnline;
  filler.arrivals = workload::PoissonArrivals{rate_per_s};
  return filler;
}

/// 10 GB of training on GPUs of 16 GB, for 70 ms.
inline LoadedRun small_run(const std::vector<FillerConfig>& fillers) {
  LoadedRun loaded;
  loaded.device = golden::small_gpu();
  loaded.training = golden::small_job(loaded.device);
  loaded.config.name = "small";
  loaded.config.duration = 70ms;
  loaded.config.training.memory = Bytes{10'000'000'000};
  loaded.config.fillers = fillers;
  for (std::size_t i = 0; i < fillers.size(); ++i) {
    loaded.fillers.push_back(*workload::parse_kernel_table(
        "Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n", "filler.csv",
        loaded.device, Duration{}));
  }
  return loaded;
}

/// small_run() with jitter, under every policy.
inline LoadedRun every_policy(const std::vector<FillerConfig>& fillers,
                              const policy::Registry& registry) {
  LoadedRun loaded = small_run(fillers);
  loaded.config.training.jitter_cv = 0.1;
  for (const policy::PolicySpec& spec : registry.all()) {
    loaded.config.policies.push_back(choice(spec.name, registry));
  }
  return loaded;
}

/// Power in proportion to the clock: the voltage is constant.
inline hardware::PowerSpec proportional() {
  hardware::PowerSpec power;
  power.idle_w = 50;
  power.limit_w = 150;
  power.full_clock_mhz = 1000;
  power.least_clock_mhz = 100;
  power.clock_step_mhz = 10;
  power.voltage_floor_mhz = 1000;
  power.compute_kernel_w = power.unknown_kernel_w = 100;
  power.memory_kernel_w = 40;
  power.memory_clock_share = 0.5;
  return power;
}

}  // namespace bubblesim::run

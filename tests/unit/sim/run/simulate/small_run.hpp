// The golden job (tests/golden/filling/small_job.hpp: two ranks, 7 ms an iteration alone) with
// fillers of one 1 ms kernel on 50 SMs, loaded without files.
#pragma once

#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/run/simulation.hpp"
#include "sim/workload/kernel_table.hpp"
#include "tests/fault.hpp"
#include "tests/golden/filling/small_job.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::run {

using namespace std::chrono_literals;

inline const policy::Registry& registry() {
  static const policy::Registry all = policies::builtin_policies();
  return all;
}

/// A policy with its defaults. specinf gets a shorter reference, since these runs are short.
inline PolicyChoice choice(const std::string& name) {
  const policy::PolicySpec& spec = **registry().find(name);
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

inline FillerConfig queue(const std::string& name, std::vector<FillJobConfig> jobs) {
  FillerConfig filler = offline(name);
  filler.mode = observe::FillerMode::kJobs;
  filler.jobs = std::move(jobs);
  return filler;
}

/// 10 GB of training on GPUs of 16 GB, for 70 ms, under these policies.
inline LoadedRun small_run(const std::vector<FillerConfig>& fillers,
                           const std::vector<std::string>& policies = {}) {
  LoadedRun loaded;
  loaded.device = golden::small_gpu();
  loaded.training = golden::small_job(loaded.device);
  loaded.config.name = "small";
  loaded.config.duration = 70ms;
  loaded.config.training.memory = Bytes{10'000'000'000};
  loaded.config.fillers = fillers;
  for (std::size_t i = 0; i < fillers.size(); ++i) {
    loaded.fillers.push_back(LoadedFiller{*workload::parse_kernel_table(
        "Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n", "filler.csv",
        loaded.device, Duration{})});
  }
  for (const std::string& name : policies) loaded.config.policies.push_back(choice(name));
  return loaded;
}

/// Until each rank has done so many iterations.
inline LoadedRun for_iterations(LoadedRun loaded, std::uint64_t iterations) {
  loaded.config.duration.reset();
  loaded.config.iterations = iterations;
  return loaded;
}

/// small_run() with jitter, under every policy.
inline LoadedRun every_policy(const std::vector<FillerConfig>& fillers) {
  LoadedRun loaded = small_run(fillers);
  loaded.config.training.jitter_cv = 0.1;
  for (const policy::PolicySpec& spec : registry().all()) {
    loaded.config.policies.push_back(choice(spec.name));
  }
  return loaded;
}

inline RunOptions on_threads(std::size_t threads) {
  RunOptions options;
  options.threads = threads;
  return options;
}

inline observe::RunReport report_of(const LoadedRun& loaded, const RunOptions& options = {}) {
  return must(run_policies(loaded, registry(), options));
}

/// Training and all fillers; a policy has its defaults, and without one nobody holds anything.
inline RunScenario all_of(const LoadedRun& loaded, const policy::PolicySpec* policy = nullptr) {
  static const policy::ParameterSet kNone;
  RunScenario scenario;
  scenario.policy = policy;
  scenario.parameters = &kNone;
  for (std::uint32_t i = 0; i < loaded.config.fillers.size(); ++i) scenario.fillers.push_back(i);
  return scenario;
}

inline observe::PolicyResult simulate(const LoadedRun& loaded, const RunScenario& scenario = {}) {
  return must(Simulation(loaded, scenario).run());
}

/// Power in proportion to the clock, as the voltage is constant: 50 W idle, 100 W more with a
/// kernel that computes on all SMs.
inline hardware::GpuSpec powered_gpu() {
  hardware::GpuSpec gpu = golden::small_gpu();
  hardware::PowerSpec& power = gpu.power;
  power.idle_w = 50;
  power.limit_w = 150;
  power.full_clock_mhz = 1000;
  power.least_clock_mhz = 100;
  power.clock_step_mhz = 10;
  power.voltage_floor_mhz = 1000;
  power.compute_kernel_w = power.unknown_kernel_w = 100;
  power.memory_kernel_w = 40;
  power.memory_clock_share = 0.5;
  return gpu;
}

inline PowerConfig metered(Duration period) { return {{}, {}, {}, period}; }
inline PowerConfig capped(double cap_w, Duration period) { return {{}, cap_w, {}, period}; }

/// An iteration is a kernel of 10 ms, behind which the host waits; it thinks before.
inline program::Program one_kernel(std::uint64_t blocks, program::KernelClass kernel_class,
                                   std::int64_t think_us = 0) {
  program::Program program = workload::ProgramMaker()
                                 .iteration(0).kernel(think_us, 10'000).wait_stream(0, 0).end()
                                 .program();
  program.profiles = {
      program::profile_kernel({blocks, 1024, 64, 0}, kernel_class, golden::small_gpu())};
  program.recorded_iterations = {workload::us(think_us) + 10ms};
  return program;
}

/// Its kernel is on all SMs and draws 100 W.
inline program::Program computing_rank(std::uint32_t number, std::int64_t think_us = 0) {
  program::Program rank = one_kernel(100, program::KernelClass::kCompute, think_us);
  rank.rank = number;
  return rank;
}

}  // namespace bubblesim::run

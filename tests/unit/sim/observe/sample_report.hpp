// A report with every optional value present, small enough to check by hand.
#pragma once

#include "sim/observe/result_rows.hpp"
#include "sim/observe/run_result.hpp"

namespace bubblesim::observe {

inline constexpr CounterSpec kSampleLoss{"sample_records_dropped", Severity::kLoss, "dropped"};
inline constexpr CounterSpec kSampleNotice{"sample_guess", Severity::kNotice, "guessed"};
inline constexpr CounterSpec kSampleInfo{"sample_info", Severity::kInfo, "seen"};

inline FillerResult sample_filler() {
  using std::chrono::milliseconds;
  FillerResult filler;
  filler.name = "bert, \"large\"";
  filler.mode = FillerMode::kOnline;
  filler.instances = {{GpuId{0}, true, "", 4, 4, Bytes{5'000'000'000}},
                      {GpuId{1}, false, "30 GB + 60 GB do not fit", 0, 0, Bytes{}}};
  filler.passes = 4;
  filler.requests_before = 1;
  filler.requests_arrived = 5;
  filler.requests_completed = 4;
  filler.requests_unfinished = 1;
  filler.requests_refused = 1;
  filler.requests_within_deadline = 2;
  filler.requests_per_s = 2;
  filler.offered_per_s = 2.5;
  filler.normalised_to_own_gpu = 0.1;
  for (const int latency : {10, 20, 30}) filler.latency.add(milliseconds{latency});
  filler.latency.add_unfinished(milliseconds{25});
  filler.memory = Bytes{5'000'000'000};
  filler.instances_unplaced = 1;
  FillJobs jobs;
  jobs.submitted = jobs.finished = 1;
  jobs.makespan = jobs.mean_completion = milliseconds{1500};
  jobs.deadlines_met = 1;
  jobs.list = {{.requests = 3,
                .requests_completed = 3,
                .submitted = milliseconds{500},
                .deadline = milliseconds{2500},
                .gpu = GpuId{0},
                .placed = milliseconds{500},
                .started = milliseconds{500},
                .ended = milliseconds{2000}}};
  filler.jobs = jobs;
  return filler;
}

inline PolicyResult sample_policy() {
  using std::chrono::milliseconds;
  PolicyResult policy;
  policy.policy = "mps";
  policy.parameters = {{"filler_percentage", "50"}, {"priority", "training"}};
  policy.oracle = true;
  policy.simulated = std::chrono::seconds{2};
  policy.training.ranks = {{0, {milliseconds{250}, Duration{250'000'001}}, 1}};
  policy.training.iterations = 1;
  policy.training.mean_iteration = Duration{250'000'001};
  policy.training.iterations_per_s = 4;
  policy.training.samples_per_s = 32;
  policy.training.normalised_to_alone = 0.8;
  policy.training.redone = 1;
  policy.training.goodput_per_s = 3;
  policy.fillers = {sample_filler()};
  GpuUse gpu;
  gpu.busy_fraction = 0.75;
  gpu.bubble_fraction = 0.5;
  gpu.recovered_fraction = 0.25;
  gpu.bubbles = {{"collective", milliseconds{600}}, {"idle", milliseconds{400}}};
  gpu.memory_high_water = Bytes{35'000'000'000};
  policy.gpus = {gpu};
  policy.activity = {100, 10, milliseconds{2}, milliseconds{20}};
  policy.events = 12345;
  policy.counters.add(kSampleLoss, 7);
  policy.counters.add(kSampleInfo, 1);
  return policy;
}

inline RunReport sample_report() {
  RunReport report;
  report.config = "example";
  report.seed = 7;
  report.device = "NVIDIA H100 80GB HBM3";
  report.ranks = 1;
  report.baseline.training_iterations_per_s = 5;
  report.baseline.training_mean_iteration = std::chrono::milliseconds{200};
  report.baseline.recorded_mean_iteration = std::chrono::milliseconds{202};
  report.baseline.replay_error = -0.0099;
  report.baseline.training_use = UseAlone{0.875, 0.5, 0.25, Bytes{30'000'000'000}};
  report.baseline.fillers = {
      {"bert, \"large\"", 15, UseAlone{0.75, 0.125, 1, Bytes{5'000'000'000}}}};
  report.baseline.bubbles = {{GpuId{0}, 4, std::chrono::milliseconds{30},
                              std::chrono::milliseconds{20}, Bytes{6'000'000'000},
                              Bytes{8'000'000'000}}};
  report.policies = {sample_policy()};
  report.counters.add(kSampleLoss, 2);
  report.counters.add(kSampleNotice, 3);
  report.training_counters.add(kSampleInfo, 1);
  report.filler_counters.resize(1);
  report.filler_counters.front().add(kSampleNotice, 3);
  return report;
}

/// 600 J in 2 s, of which fillers drew 100 J above idle; 4 iterations a second, 4 requests.
inline RunReport metered_report() {
  RunReport report = sample_report();
  PolicyResult& policy = report.policies.front();
  policy.gpus.front().power = PowerUse{600, 100, 300, 390, 1200, 3, 310};
  policy.fillers.front().energy_j = 100;
  policy.notices = {"the cap of 290 W was not kept"};
  report.baseline.power_limit = PowerLimitCost{6.25, 0.8, 350, 290};
  return report;
}

/// The cell of the first row.
inline Cell typed_cell(const RunReport& report, std::string_view column) {
  const auto columns = result_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column) return result_rows(report).front().cells.at(i);
  }
  return "no such column";
}

/// The same report as of a measurement on a real GPU, which does not give the GPU's use.
inline RunReport measured_report() {
  RunReport report = sample_report();
  report.measured = Measurement{"gpu", "2026-11-22T08:00:00Z", "580.65.06", 3, 2, 1980, 1965};
  report.baseline.training_use.reset();
  report.baseline.fillers.front().use.reset();
  for (PolicyResult& policy : report.policies) {
    policy.gpus.clear();
    policy.host = HostActivity{.substrate = "mps", .decisions = 12};
  }
  return report;
}

}  // namespace bubblesim::observe

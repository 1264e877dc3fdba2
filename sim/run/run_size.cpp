#include "sim/run/run_size.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <variant>

namespace bubblesim::run {
namespace {

constexpr double kRequestBytes = 32;
constexpr double kKernelsPerSecond = 3e6;

// A pass alone; a program that says nothing of it takes at least what its operations do in turn.
double pass_seconds(const program::Program& program) {
  if (program.recorded_span > Duration::zero()) return to_seconds(program.recorded_span);
  Duration sum{};
  for (const program::Op& op : program.ops) sum += op.duration;
  return to_seconds(sum);
}

double length_of(const LoadedRun& run) {
  if (run.config.duration) return to_seconds(*run.config.duration);
  double longest = 0;
  for (const program::Program& rank : run.training->ranks) {
    longest = std::max(longest, pass_seconds(rank) / static_cast<double>(rank.iterations));
  }
  return longest * static_cast<double>(run.config.iterations.value_or(0));
}

double kernels_of(const program::Program& program, double seconds) {
  const double pass = pass_seconds(program);
  return pass > 0 ? static_cast<double>(program.ops.size()) * seconds / pass : 0;
}

// Recorded arrivals are no more than their file holds.
double rate_of(const FillerConfig& filler) {
  if (!filler.arrivals) return 0;
  if (const auto* poisson = std::get_if<workload::PoissonArrivals>(&*filler.arrivals)) {
    return poisson->rate_per_s;
  }
  const auto* gamma = std::get_if<workload::GammaArrivals>(&*filler.arrivals);
  return gamma != nullptr ? gamma->rate_per_s : 0;
}

double gpus_of(const FillerConfig& filler, const LoadedRun& run) {
  if (filler.instances) return *filler.instances;
  return static_cast<double>(filler.gpus ? filler.gpus->size() : run.training->ranks.size());
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1e5 ? "%.3g" : "%.2g", value);
  return text;
}

}  // namespace

RunSize size_of(const LoadedRun& run) {
  const double seconds = length_of(run);
  RunSize size;
  for (const program::Program& rank : run.training->ranks) {
    size.kernels += kernels_of(rank, seconds);
  }
  for (std::size_t i = 0; i < run.fillers.size(); ++i) {
    const FillerConfig& filler = run.config.fillers[i];
    size.requests += rate_of(filler) * seconds;
    size.kernels += gpus_of(filler, run) * kernels_of(run.fillers[i]->program, seconds);
  }
  const auto policies = static_cast<double>(run.config.policies.size());
  return {size.requests * policies, size.kernels * policies};
}

Result<void> check_size(const LoadedRun& run) {
  const RunSize size = size_of(run);
  if (size.requests <= kMostRequests && size.kernels <= kMostKernels) return {};
  return fail(run.config.file, {},
              "would simulate " + rounded(size.requests) + " requests (up to " +
                  rounded(size.requests * kRequestBytes * 1e-9) + " GB of memory) and " +
                  rounded(size.kernels) + " kernels (up to " +
                  rounded(size.kernels / kKernelsPerSecond / 3600) +
                  " hours on one core); at most " + rounded(kMostRequests) + " and " +
                  rounded(kMostKernels) +
                  " are simulated unless it is forced: --force, of `run`");
}

}  // namespace bubblesim::run

#include "capture/live/fill_report.hpp"

namespace bubblesim::capture {

LiveJobReport report_of_counts(const LiveCounts& counts) {
  const auto span = [](const std::atomic<std::uint64_t>& ns) {
    return Duration{static_cast<Duration::rep>(ns.load())};
  };
  LiveJobReport report;
  report.processes = counts.processes;
  report.ungated_processes = counts.ungated_processes;
  report.processes_elsewhere = counts.processes_elsewhere;
  report.kernels = counts.kernels;
  report.collectives = counts.collectives;
  report.copies = counts.copies;
  report.blocks = counts.blocks;
  report.undecided = counts.undecided;
  report.held = counts.held;
  report.held_time = span(counts.held_ns);
  report.passing_time = span(counts.passing_ns);
  report.window_waits = counts.window_waits;
  report.window_time = span(counts.window_ns);
  report.window_passed = counts.window_passed;
  report.completions = counts.completions;
  report.completions_guessed = counts.completions_guessed;
  report.iterations = counts.iterations;
  return report;
}

}  // namespace bubblesim::capture

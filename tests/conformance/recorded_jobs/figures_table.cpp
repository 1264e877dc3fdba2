#include "tests/conformance/recorded_jobs/figures_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "sim/run/parallel.hpp"

namespace bubblesim::testing {
namespace {

double milliseconds(Duration time) { return 1e3 * to_seconds(time); }

std::string rules_cell(const JobRow& row) {
  std::string text;
  for (const BrokenRule& rule : broken_rules(row.figures)) {
    text += (text.empty() ? "" : "; ") + rule.text;
  }
  return text.empty() ? "all hold" : text;
}

using BrokenRules = std::vector<BrokenRule>;

void check_share(const char* name, double share, BrokenRules& broken) {
  if (share >= -kRoundingOfShares && share <= 1 + kRoundingOfShares) return;
  broken.push_back({Rule::kShares, fmt::format("sensitivity to {} is {:.4f}", name, share)});
}

void check_busy(const char* name, double busy, double share, double least, BrokenRules& broken) {
  if (busy <= kBusyAbove || share > least) return;
  broken.push_back({Rule::kBusy, fmt::format("{} busy {:.1f} %, sensitivity {:.4f}", name,
                                             100 * busy, share)});
}

}  // namespace

std::vector<BrokenRule> broken_rules(const Result<JobFigures>& result) {
  if (!result) return {{Rule::kReadable, result.error().message}};
  const JobFigures& figures = *result;
  BrokenRules broken;
  if (figures.spread() > kTimesAgreeWithin) {
    broken.push_back({Rule::kTimes, fmt::format("iteration times {:.3f} % apart",
                                                100 * figures.spread())});
  }
  const Sensitivities& shares = figures.sensitivities;
  check_share("kernels", shares.kernels, broken);
  check_share("host", shares.host, broken);
  check_share("link", shares.link, broken);
  check_share("nothing", shares.fixed, broken);
  if (shares.sum() > 1 + kRoundingOfShares) {
    broken.push_back({Rule::kShares, fmt::format("sensitivities add up to {:.4f}", shares.sum())});
  }
  check_busy("own operations", figures.own, shares.kernels, kLeastOfBusyKernels, broken);
  check_busy("host", figures.host, shares.host, kRoundingOfShares, broken);
  check_busy("collectives", figures.link, shares.link, kRoundingOfShares, broken);
  const double apart = figures.run_bubbles - figures.inspect_bubbles;
  if (std::abs(apart) > kBubblesAgreeWithin) {
    broken.push_back({Rule::kBubbles, fmt::format("bubbles {:+.2f} points apart", 100 * apart)});
  }
  return broken;
}

std::vector<JobRow> rows_of(const std::string& data_folder) {
  const std::vector<validation::RecordedJob> jobs = validation::every_job(data_folder);
  std::vector<JobRow> rows(jobs.size());
  run::for_each_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    rows[i] = {jobs[i].name, figures_of(jobs[i])};
  });
  return rows;
}

std::string markdown(const std::vector<JobRow>& rows) {
  std::string text =
      "| job | ranks | iterations used / recorded | inspect ms | replay ms | run ms | apart % "
      "| own % | bubbles inspect % | bubbles run % | kernels | host | link | fixed "
      "| unexplained % | rules |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n";
  for (const JobRow& row : rows) {
    if (!row.figures) {
      text += fmt::format("| {} | | | | | | | | | | | | | | | {} |\n", row.name, rules_cell(row));
      continue;
    }
    const JobFigures& f = *row.figures;
    text += fmt::format(
        "| {} | {} | {}/{} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.1f} | {:.1f} | {:.1f} | {:.3f} "
        "| {:.3f} | {:.3f} | {:.3f} | {:.2f} | {} |\n",
        row.name, f.ranks, f.used, f.recorded, milliseconds(f.inspect), milliseconds(f.replay),
        milliseconds(f.run), 100 * f.spread(), 100 * f.own, 100 * f.inspect_bubbles,
        100 * f.run_bubbles, f.sensitivities.kernels, f.sensitivities.host, f.sensitivities.link,
        f.sensitivities.fixed, 100 * f.unexplained, rules_cell(row));
  }
  return text;
}

std::string tsv(const std::vector<JobRow>& rows) {
  std::string text =
      "job\tranks\titerations_used\titerations_recorded\tinspect_ns\treplay_ns\trun_ns\t"
      "busy_fraction\town_fraction\thost_fraction\tlink_fraction\t"
      "inspect_bubble_fraction\trun_bubble_fraction\t"
      "kernels_sensitivity\thost_sensitivity\tlink_sensitivity\tfixed_share\t"
      "unexplained_fraction\tdevice_assumed\trules\n";
  for (const JobRow& row : rows) {
    const JobFigures f = row.figures.value_or(JobFigures{});
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t", row.name, f.ranks, f.used, f.recorded,
                        to_ns(f.inspect), to_ns(f.replay), to_ns(f.run));
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t", f.busy, f.own, f.host, f.link,
                        f.inspect_bubbles, f.run_bubbles);
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", f.sensitivities.kernels,
                        f.sensitivities.host, f.sensitivities.link, f.sensitivities.fixed,
                        f.unexplained,
                        f.device_assumed ? 1 : 0, rules_cell(row));
  }
  return text;
}

}  // namespace bubblesim::testing

#include "sim/fit/fit_sharing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/units.hpp"

namespace bubblesim::fit {
namespace {

using validate::JudgedRow;
using validate::Outcome;
using validate::SharingRow;

constexpr double kFirstStep = 1.4;
constexpr double kLeastStep = 1.05;
constexpr Duration kGrain{100};  // constants are written in tenths of a microsecond

using Constants = std::array<Duration, 3>;

Constants constants_of(const hardware::GpuSpec& gpu) {
  return {gpu.time_slice, gpu.context_switch, gpu.client_switch};
}

void put(hardware::GpuSpec& gpu, const Constants& constants) {
  gpu.time_slice = constants[0];
  gpu.context_switch = constants[1];
  gpu.client_switch = constants[2];
}

Duration rounded(Duration span) { return std::max(kGrain, span / kGrain.count() * kGrain.count()); }

}  // namespace

std::vector<SharingRow> fit_rows(const std::vector<SharingRow>& rows) {
  std::vector<SharingRow> out;
  for (const SharingRow& row : rows) {
    if (row.role != validate::Role::kFit || !row.note.empty()) continue;
    if (row.system == "mps" || row.system == "mps_priority" || row.system == "time_slicing") {
      out.push_back(row);
    }
  }
  return out;
}

// Percentiles beyond the 95th rest on few requests; the 90th is between the two that count.
double sharing_loss(const std::vector<JudgedRow>& rows) {
  double sum = 0;
  std::map<std::string, std::pair<double, std::size_t>> by_table;
  for (const JudgedRow& row : rows) {
    if (row.outcome == Outcome::kStated) continue;
    auto& [error, figures] = by_table[row.row.table];
    for (const validate::SharingFigure& figure : row.row.figures) {
      if (figure.metric == "p90_ms" || figure.metric == "p99_ms") continue;
      error += row.outcome == Outcome::kPredicted ? std::abs(figure.error()) : 1;
      ++figures;
    }
  }
  for (const auto& [table, of] : by_table) sum += of.first / static_cast<double>(of.second);
  return by_table.empty() ? 0 : sum / static_cast<double>(by_table.size());
}

CheckedResult<SharingFit> fit_sharing(const std::vector<SharingRow>& all,
                                      validate::SharingStage stage, const std::string& device,
                                      std::size_t threads, std::size_t rounds,
                                      const std::function<void(const std::string&)>& progress) {
  std::vector<SharingRow> rows = fit_rows(all);
  std::erase_if(rows, [&](const SharingRow& row) { return stage.device_of(row) != device; });
  if (rows.empty()) {
    return fail("no row of a " + device +
                " with the role fit under mps, mps_priority or time_slicing");
  }
  hardware::GpuSpec& gpu = stage.machines.at(device).gpu;
  SharingFit out;
  out.rows = rows.size();
  const auto loss = [&](const Constants& constants) -> CheckedResult<double> {
    put(gpu, constants);
    ++out.evaluations;
    BUBBLESIM_ASSIGN_OR_RETURN(const auto judged,
                               validate::judge_sharing(rows, stage, threads, nullptr));
    const auto unjudged = validate::unjudged_sharing(judged);
    if (!unjudged.empty() && unjudged.front().rows == judged.size()) {
      return fail("no row can be judged: " + unjudged.front().reason);
    }
    return sharing_loss(judged);
  };
  Constants best = constants_of(gpu);
  BUBBLESIM_ASSIGN_OR_RETURN(out.start_error, loss(best));
  out.error = out.start_error;
  double step = kFirstStep;
  for (std::size_t round = 0; round < rounds && step >= kLeastStep; ++round) {
    bool better = false;
    for (std::size_t i = 0; i < best.size(); ++i) {
      for (const double factor : {step, 1 / step}) {
        Constants tried = best;
        tried[i] = rounded(scale(best[i], factor));
        BUBBLESIM_ASSIGN_OR_RETURN(const double error, loss(tried));
        if (progress) progress("error " + std::to_string(error));
        if (error >= out.error) continue;
        out.error = error;
        best = tried;
        better = true;
        break;
      }
    }
    if (!better) step = std::sqrt(step);
  }
  out.time_slice = best[0];
  out.context_switch = best[1];
  out.client_switch = best[2];
  return out;
}

}  // namespace bubblesim::fit

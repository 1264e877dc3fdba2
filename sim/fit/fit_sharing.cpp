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
using validate::RowOutcome;
using validate::SharingRow;

constexpr double kFirstStep = 1.4;
constexpr double kLeastStep = 1.05;
constexpr double kTimeGrain = 100;   // constants are written in tenths of a microsecond
constexpr double kRatioGrain = 0.01;

double ns(Duration span) { return static_cast<double>(span.count()); }
Duration span_of(double ns) { return Duration{std::llround(ns)}; }

constexpr std::array<SharingConstant, 5> kConstants{{
    {"time_slice", [](const hardware::GpuSpec& gpu) { return ns(gpu.time_slice); },
     [](hardware::GpuSpec& gpu, double value) { gpu.time_slice = span_of(value); }, true, 1e4, 1e9},
    {"context_switch", [](const hardware::GpuSpec& gpu) { return ns(gpu.context_switch); },
     [](hardware::GpuSpec& gpu, double value) { gpu.context_switch = span_of(value); }, true, 1e3,
     1e9},
    {"client_switch", [](const hardware::GpuSpec& gpu) { return ns(gpu.client_switch); },
     [](hardware::GpuSpec& gpu, double value) { gpu.client_switch = span_of(value); }, true, 1e3,
     1e8},
    {"part/dram_saturating_sms",
     [](const hardware::GpuSpec& gpu) { return gpu.part.dram_saturating_sms; },
     [](hardware::GpuSpec& gpu, double value) { gpu.part.dram_saturating_sms = value; }, false,
     0.01, 1},
    {"part/dark_clock_gain", [](const hardware::GpuSpec& gpu) { return gpu.part.dark_clock_gain; },
     [](hardware::GpuSpec& gpu, double value) { gpu.part.dark_clock_gain = value; }, false, 1, 3},
}};

using Constants = std::array<double, kConstants.size()>;

Constants constants_of(const hardware::GpuSpec& gpu) {
  Constants out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kConstants[i].get(gpu);
  return out;
}

void put(hardware::GpuSpec& gpu, const Constants& constants) {
  for (std::size_t i = 0; i < constants.size(); ++i) kConstants[i].put(gpu, constants[i]);
}

double rounded(const SharingConstant& constant, double value) {
  const double grain = constant.is_time ? kTimeGrain : kRatioGrain;
  return std::clamp(std::round(value / grain) * grain, constant.least, constant.most);
}

constexpr std::array<std::string_view, 4> kSystems{"mps", "mps_priority", "time_slicing", "sm_cap"};

}  // namespace

std::span<const SharingConstant> sharing_constants() { return kConstants; }

std::vector<SharingRow> fit_rows(const std::vector<SharingRow>& rows) {
  std::vector<SharingRow> out;
  for (const SharingRow& row : rows) {
    if (row.role != validate::RowRole::kFit || !row.note.empty()) continue;
    const auto fitted = std::find(kSystems.begin(), kSystems.end(), row.system);
    if (fitted != kSystems.end()) out.push_back(row);
  }
  return out;
}

// Percentiles beyond the 95th rest on few requests; the 90th is between the two that count.
double sharing_loss(const std::vector<JudgedRow>& rows) {
  double sum = 0;
  std::map<std::string, std::pair<double, std::size_t>> by_table;
  for (const JudgedRow& row : rows) {
    if (row.outcome == RowOutcome::kStated) continue;
    auto& [error, figures] = by_table[row.row.table];
    for (const validate::SharingFigure& figure : row.row.figures) {
      if (figure.metric == "p90_ms" || figure.metric == "p99_ms") continue;
      error += row.outcome == RowOutcome::kPredicted ? std::abs(figure.error()) : 1;
      ++figures;
    }
  }
  for (const auto& [table, total] : by_table) {
    sum += total.first / static_cast<double>(total.second);
  }
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
                " with the role fit under mps, mps_priority, time_slicing or sm_cap");
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
        tried[i] = rounded(kConstants[i], best[i] * factor);
        if (tried[i] == best[i]) continue;
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
  out.constants.assign(best.begin(), best.end());
  return out;
}

}  // namespace bubblesim::fit

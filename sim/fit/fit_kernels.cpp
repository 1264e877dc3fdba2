#include "sim/fit/fit_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/base/add_once.hpp"
#include "sim/fit/least_squares.hpp"
#include "sim/model/efficiency_fields.hpp"
#include "sim/model/kernel_time.hpp"
#include "sim/model/precision_names.hpp"

namespace bubblesim::fit {
namespace {

using model::Efficiency;
using model::EfficiencyField;
using model::GemmShape;
using model::KernelKind;
using model::KernelWork;
using model::Precision;

// What is fitted at once, in this order: a later stage builds on the constants of earlier ones
// (fp32 products on those of tensor cores, convolutions on those of products). Every stage starts
// from the defaults in efficiency.hpp, so that a fit does not depend on the file that it renews.
struct Stage {
  bool (*takes)(const KernelMeasurement&);
  std::vector<std::string_view> paths;
};

bool is_single(const KernelMeasurement& row) { return row.work.precision == Precision::kFp32; }

// 1 us is the resolution of some tables: shorter kernels tell little.
bool is_long(const KernelMeasurement& row) { return row.measured >= std::chrono::microseconds(3); }

template <KernelKind K>
bool is_kind(const KernelMeasurement& row) {
  return row.work.kind == K && is_long(row);
}
bool is_tensor_gemm(const KernelMeasurement& row) {
  return row.work.kind == KernelKind::kGemm && !is_single(row);
}
bool is_single_gemm(const KernelMeasurement& row) {
  return row.work.kind == KernelKind::kGemm && is_single(row);
}

const std::vector<Stage>& stages() {
  static const std::vector<Stage> table = {
      {is_tensor_gemm,
       {"gemm/math_share", "gemm/dram_share", "gemm/fixed", "gemm/tile_half_size",
        "gemm/wave_overhead", "gemm/roof_exponent", "gemm/idle_speedup", "gemm/hot_slowdown",
        "gemm/hot_after", "gemm/sm_reach", "gemm/split_dram_share"}},
      {is_single_gemm, {"gemm/fp32_math_share"}},
      {is_kind<KernelKind::kConvolution>,
       {"convolution/math_share", "convolution/dram_share", "convolution/roof_exponent"}},
      {is_kind<KernelKind::kAttention>, {"attention/math_share", "attention/fixed"}},
      {is_kind<KernelKind::kElementwise>,
       {"elementwise/dram_share", "elementwise/fixed", "l2/resident", "l2/speedup"}},
      {is_kind<KernelKind::kNormalisation>, {"normalisation/dram_share", "normalisation/fixed"}},
      {is_kind<KernelKind::kSoftmax>, {"softmax/dram_share", "softmax/fixed"}},
      {is_kind<KernelKind::kEmbedding>, {"embedding/dram_share", "embedding/fixed"}},
      {is_kind<KernelKind::kOptimizer>, {"optimizer/dram_share", "optimizer/fixed"}},
  };
  return table;
}

constexpr std::size_t kMostRows = 3000;    // of a stage; more are thinned out evenly
constexpr std::size_t kLeastRows = 4;      // of a stage; with fewer nothing is fitted
// What is known of a constant before any row: its default, give or take 30 %. It weighs as one row
// that is measured to 5 %: nothing beside thousands, and enough to hold what a dozen cannot tell.
constexpr double kPriorSpread = 0.3;
constexpr double kPriorError = 0.05;

using Rows = std::vector<const KernelMeasurement*>;

double log_ratio(const KernelMeasurement& row, const hardware::GpuSpec& gpu,
                 const Efficiency& efficiency) {
  return std::log(to_seconds(model::time_kernel(row.work, gpu, efficiency).duration) /
                  to_seconds(row.measured));
}

// Rows differ by source and operator in blocks; every i-th of them meets all.
Rows thinned(const Rows& rows) {
  if (rows.size() <= kMostRows) return rows;
  Rows out;
  for (std::size_t i = 0; i < kMostRows; ++i) out.push_back(rows[i * rows.size() / kMostRows]);
  return out;
}

std::string sentence(const Rows& rows, double mean_absolute) {
  std::vector<std::string> publishers;
  for (const KernelMeasurement* row : rows) {
    add_once(publishers, row->source.substr(0, row->source.find(' ')));
  }
  return fmt::format("fitted: bubblesim fit kernels, {} rows of {}, mean |error| {:.1f} %",
                     rows.size(), fmt::join(publishers, ", "), 100 * mean_absolute);
}

double mean_absolute_error(const Rows& rows, const MeasuredDevices& devices,
                           const Efficiency& efficiency) {
  double sum = 0;
  for (const KernelMeasurement* row : rows) {
    sum += std::abs(std::exp(log_ratio(*row, devices.find(row->device)->second, efficiency)) - 1);
  }
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

// PyTorch's images are channels-first; the libraries transpose them before and after, without
// overlap: three times the traffic. All else is as for products.
void start_convolution(Efficiency& efficiency) {
  efficiency.convolution = efficiency.gemm;
  efficiency.convolution.dram_share = 0.3;
  efficiency.convolution.roof_exponent = 1.1;
}

Result<void> fit_stage(const Stage& stage, const Rows& all, const MeasuredDevices& devices,
                       KernelFit& fit) {
  Rows rows;
  for (const KernelMeasurement* row : all) {
    if (row->role == validate::RowRole::kFit && stage.takes(*row)) rows.push_back(row);
  }
  if (rows.size() < kLeastRows) return {};
  if (stage.paths[0].starts_with("convolution")) start_convolution(fit.efficiency);
  const Rows few = thinned(rows);
  Efficiency defaults;
  if (stage.paths[0].starts_with("convolution")) defaults.convolution = fit.efficiency.convolution;
  std::vector<const EfficiencyField*> fields;
  const auto count = static_cast<Eigen::Index>(stage.paths.size());
  Eigen::VectorXd scale(count), start(count), low(count), high(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    fields.push_back(&model::efficiency_field(stage.paths[static_cast<std::size_t>(i)]));
    const double value = fields.back()->value(defaults);
    scale[i] = value > 0 ? value : fields.back()->high * 1e-3;
    start[i] = value / scale[i];
    low[i] = std::max(fields.back()->low / scale[i], start[i] / 20);
    high[i] = std::min(fields.back()->high / scale[i], std::max(start[i], 1.0) * 20);
  }
  Efficiency tried = fit.efficiency;
  const auto put = [&](const Eigen::VectorXd& values) {
    for (Eigen::Index i = 0; i < count; ++i) {
      fields[static_cast<std::size_t>(i)]->value(tried) = values[i] * scale[i];
    }
  };
  const Residuals residuals = [&](const Eigen::VectorXd& values) {
    put(values);
    Eigen::VectorXd out(static_cast<Eigen::Index>(few.size()) + count);
    for (std::size_t i = 0; i < few.size(); ++i) {
      const auto& gpu = devices.find(few[i]->device)->second;
      out[static_cast<Eigen::Index>(i)] = log_ratio(*few[i], gpu, tried);
    }
    out.tail(count) = (values - start) * (kPriorError / kPriorSpread);
    return out;
  };
  BUBBLESIM_ASSIGN_OR_RETURN(const FitResult found,
                             fit_least_squares(residuals, start, low, high));
  put(found.parameters);
  const Efficiency before = fit.efficiency;
  fit.efficiency = tried;
  const std::string source = sentence(rows, mean_absolute_error(rows, devices, tried));
  for (const EfficiencyField* field : fields) {
    Efficiency old = before;
    fit.constants.push_back(
        {std::string(field->path), std::string(field->unit), field->value(old),
         field->value(tried), source});
  }
  return {};
}

std::string group_name(const KernelWork& work) {
  constexpr std::array<std::string_view, model::kKernelKinds> kKinds = {
      "gemm",          "attention", "convolution", "elementwise",
      "normalisation", "softmax",   "embedding",   "optimizer"};
  return fmt::format("{}, {}", kKinds[index_of(work.kind)],
                     choice_name(work.precision, model::kPrecisionNames));
}

std::string row_text(const KernelMeasurement& row) {
  const GemmShape& s = row.work.gemm;
  const std::string shape = s.m > 0 ? fmt::format("{} x {} x {} x {}", s.batch, s.m, s.n, s.k)
                                    : fmt::format("{:.3g} MB", row.work.bytes * 1e-6);
  return fmt::format("{}, {} {}, {:.1f} us", row.source, row.work.name, shape,
                     to_seconds(row.measured) * 1e6);
}

Result<void> check_devices(const KernelMeasurements& measured, const MeasuredDevices& devices) {
  for (const KernelMeasurement& row : measured.rows) {
    if (devices.find(row.device) == devices.end()) {
      return fail("kernels measured on \"" + row.device + "\", which is not a device given");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<KernelErrors>> kernel_errors(const KernelMeasurements& measured,
                                                const MeasuredDevices& devices,
                                                const Efficiency& efficiency) {
  BUBBLESIM_RETURN_IF_ERROR(check_devices(measured, devices));
  using RowErrors = std::vector<validate::LabelledError>;
  std::map<std::pair<validate::RowRole, std::string>, std::pair<RowErrors, RowErrors>> groups;
  for (const KernelMeasurement& row : measured.rows) {
    auto& [all, long_rows] = groups[{row.role, group_name(row.work)}];
    const auto& gpu = devices.find(row.device)->second;
    all.push_back({std::exp(log_ratio(row, gpu, efficiency)) - 1, row_text(row)});
    if (row.measured >= std::chrono::microseconds(20)) long_rows.push_back(all.back());
  }
  std::vector<KernelErrors> out;
  for (const auto& [key, errors] : groups) {
    out.push_back({key.second, key.first, validate::summarise_errors(errors.first),
                   validate::summarise_errors(errors.second)});
  }
  return out;
}

Result<KernelFit> fit_kernels(const KernelMeasurements& measured, const MeasuredDevices& devices,
                              const Efficiency& start) {
  BUBBLESIM_RETURN_IF_ERROR(check_devices(measured, devices));
  KernelFit fit;
  fit.efficiency = start;
  Rows rows;
  for (const KernelMeasurement& row : measured.rows) rows.push_back(&row);
  for (const Stage& stage : stages()) {
    BUBBLESIM_RETURN_IF_ERROR(fit_stage(stage, rows, devices, fit));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(fit.errors, kernel_errors(measured, devices, fit.efficiency));
  return fit;
}

}  // namespace bubblesim::fit

#include "sim/fit/fit_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/fit/least_squares.hpp"
#include "sim/run/parallel.hpp"

namespace bubblesim::fit {
namespace {

constexpr int kMostSteps = 12;
constexpr double kLogStep = 0.03;        // of a logarithm, for differences
constexpr double kGoodEnough = 1e-3;  // relative gain of a step below which the fit ends
constexpr double kPrior = 0.02;       // pull of a constant towards its start, per unit logarithm

// Residuals of outliers count as their logarithm, so that a few odd rows do not bend the rest.
constexpr double kOutlier = 0.05;

using Eigen::VectorXd;
using synth::SoftwareSpec;

/// A constant's place in the software, its unit, and the range in which it means something.
struct Slot {
  const char* name;
  const char* unit;
  double low;
  double high;
  double (*get)(const SoftwareSpec&);
  void (*set)(SoftwareSpec&, double);
};

template <Duration SoftwareSpec::*Member>
constexpr Slot span(const char* name, double high) {
  return {name,
          "us",
          1,
          high,
          [](const SoftwareSpec& software) { return to_seconds(software.*Member) * 1e6; },
          [](SoftwareSpec& software, double us) {
            software.*Member = Duration{std::llround(us * 1e3)};
          }};
}

// Faster than a tenth beyond the libraries that efficiency files were fitted to would be faster
// than the device's memory for kernels that stream.
template <double synth::KernelSlowdown::*Member>
constexpr Slot factor(const char* name) {
  return {name,
          "times",
          0.9,
          2.5,
          [](const SoftwareSpec& software) { return software.slowdown.*Member; },
          [](SoftwareSpec& software, double value) { software.slowdown.*Member = value; }};
}

constexpr std::array kSlots{
    span<&SoftwareSpec::forward_gap>("forward_gap", 1e3),
    span<&SoftwareSpec::backward_gap>("backward_gap", 1e3),
    span<&SoftwareSpec::optimizer_gap>("optimizer_gap", 1e4),
    span<&SoftwareSpec::collective_call>("collective_call", 1e4),
    span<&SoftwareSpec::transfer_call>("transfer_call", 1e4),
    span<&SoftwareSpec::action>("action", 1e5),
    span<&SoftwareSpec::iteration>("iteration", 1e6),
    factor<&synth::KernelSlowdown::gemm>("slowdown/gemm"),
    factor<&synth::KernelSlowdown::batched_gemm>("slowdown/batched_gemm"),
    factor<&synth::KernelSlowdown::streaming>("slowdown/streaming"),
};

Result<std::vector<const Slot*>> slots_of(const std::vector<std::string>& names) {
  std::vector<const Slot*> out;
  for (const Slot& slot : kSlots) {
    if (names.empty()) out.push_back(&slot);
  }
  for (const std::string& name : names) {
    const auto found = std::find_if(kSlots.begin(), kSlots.end(),
                                    [&](const Slot& slot) { return slot.name == name; });
    if (found == kSlots.end()) {
      return fail(unknown_name_message("constant", name, fit_constants()));
    }
    out.push_back(&*found);
  }
  return out;
}

// Logarithm of simulated over measured time.
Result<double> residual_of(const FitSample& sample, const SoftwareSpec& software) {
  validate::Testbed machine = *sample.machine;
  machine.software = software;
  BUBBLESIM_ASSIGN_OR_RETURN(const validate::Prediction predicted,
                             validate::predict(sample.row, machine));
  return sample.row.seconds ? std::log(predicted.seconds / *sample.row.seconds)
                            : std::log(*sample.row.tflops_per_gpu / predicted.tflops_per_gpu);
}

SoftwareSpec software_at(SoftwareSpec software, const std::vector<const Slot*>& slots,
                         const VectorXd& logs) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i]->set(software, std::exp(logs[static_cast<Eigen::Index>(i)]));
  }
  return software;
}

/// The residuals of all rows.
Result<VectorXd> residuals_of(const std::vector<FitSample>& samples, const SoftwareSpec& software,
                              std::size_t threads) {
  std::vector<Result<double>> found(samples.size(), 0.0);
  run::for_each_parallel(samples.size(), threads,
                         [&](std::size_t i) { found[i] = residual_of(samples[i], software); });
  VectorXd out(static_cast<Eigen::Index>(samples.size()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(out[static_cast<Eigen::Index>(i)], found[i]);
  }
  return out;
}

}  // namespace

std::vector<std::string> fit_constants() {
  std::vector<std::string> out;
  for (const Slot& slot : kSlots) out.emplace_back(slot.name);
  return out;
}

Result<TrainingFit> fit_training(const std::vector<FitSample>& samples,
                                 const SoftwareSpec& software,
                                 const std::vector<std::string>& names,
                                 const FitProgress& progress, std::size_t threads) {
  if (samples.empty()) return fail("no rows with the role \"fit\"");
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<const Slot*> slots, slots_of(names));
  const auto count = static_cast<Eigen::Index>(slots.size());
  const auto rows = static_cast<Eigen::Index>(samples.size());
  VectorXd start(count), low(count), high(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Slot& slot = *slots[static_cast<std::size_t>(i)];
    low[i] = std::log(slot.low);
    high[i] = std::log(slot.high);
    start[i] = std::log(std::clamp(slot.get(software), slot.low, slot.high));
  }
  const Residuals residuals = [&](const VectorXd& logs) -> Result<VectorXd> {
    VectorXd out(rows + count);
    BUBBLESIM_ASSIGN_OR_RETURN(
        out.head(rows), residuals_of(samples, software_at(software, slots, logs), threads));
    out.tail(count) = kPrior * std::sqrt(static_cast<double>(rows)) * (logs - start);
    return out;
  };
  TrainingFit out;
  FitOptions options{Loss::kCauchy, kOutlier, kLogStep, kMostSteps, kGoodEnough, nullptr};
  options.progress = [&](int step, const VectorXd& now) {
    out.mean_error_after = (now.head(rows).array().exp() - 1).abs().mean();
    if (step == 0) out.mean_error_before = out.mean_error_after;
    if (step > 0 && progress) progress(step, out.mean_error_after);
  };
  BUBBLESIM_ASSIGN_OR_RETURN(const FitResult found,
                             fit_least_squares(residuals, start, low, high, options));
  out.steps = found.iterations;
  out.software = software_at(software, slots, found.parameters);
  for (const Slot* slot : slots) {
    out.constants.push_back(
        {slot->name, slot->unit, slot->get(software), slot->get(out.software), {}});
  }
  return out;
}

}  // namespace bubblesim::fit

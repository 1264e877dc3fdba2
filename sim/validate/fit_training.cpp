#include "sim/validate/fit_training.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/run/parallel.hpp"

namespace bubblesim::validate {
namespace {

constexpr int kMostSteps = 12;
constexpr double kStep = 0.03;        // of a logarithm, for differences
constexpr double kGoodEnough = 1e-3;  // relative gain of a step below which the fit ends
constexpr double kPrior = 0.02;       // pull of a constant towards its start, per unit logarithm

using synth::SoftwareSpec;

Duration seconds(double value) {
  return Duration{static_cast<std::int64_t>(std::llround(value * 1e9))};
}

/// A constant's place in the software, and the range in which it means something.
struct Slot {
  const char* name;
  double low;
  double high;
  double (*get)(const SoftwareSpec&);
  void (*set)(SoftwareSpec&, double);
};

template <Duration SoftwareSpec::*Member>
constexpr Slot span(const char* name, double low, double high) {
  return {name, low, high, [](const SoftwareSpec& it) { return to_seconds(it.*Member); },
          [](SoftwareSpec& it, double value) { it.*Member = seconds(value); }};
}

// Faster than a tenth beyond the libraries that efficiency files were fitted to would be faster
// than the device's memory for kernels that stream.
template <double synth::KernelSlowdown::*Member>
constexpr Slot factor(const char* name) {
  return {name, 0.9, 2.5, [](const SoftwareSpec& it) { return it.slowdown.*Member; },
          [](SoftwareSpec& it, double value) { it.slowdown.*Member = value; }};
}

constexpr std::array kSlots{
    span<&SoftwareSpec::forward_gap>("forward_gap", 1e-6, 1e-3),
    span<&SoftwareSpec::backward_gap>("backward_gap", 1e-6, 1e-3),
    span<&SoftwareSpec::optimizer_gap>("optimizer_gap", 1e-6, 1e-2),
    span<&SoftwareSpec::collective_call>("collective_call", 1e-6, 1e-2),
    span<&SoftwareSpec::transfer_call>("transfer_call", 1e-6, 1e-2),
    span<&SoftwareSpec::action>("action", 1e-6, 1e-1),
    span<&SoftwareSpec::iteration>("iteration", 1e-6, 1),
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
  Machine machine = *sample.machine;
  machine.software = software;
  BUBBLESIM_ASSIGN_OR_RETURN(const Prediction predicted, predict(sample.row, machine));
  return sample.row.seconds ? std::log(predicted.seconds / *sample.row.seconds)
                            : std::log(*sample.row.tflops_per_gpu / predicted.tflops_per_gpu);
}

class Problem {
 public:
  Problem(const std::vector<FitSample>& samples, SoftwareSpec software,
          std::vector<const Slot*> slots, std::size_t threads)
      : samples_(samples), software_(std::move(software)), slots_(std::move(slots)),
        threads_(threads) {
    start_.resize(static_cast<Eigen::Index>(slots_.size()));
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const double value = std::clamp(slots_[i]->get(software_), slots_[i]->low, slots_[i]->high);
      start_[static_cast<Eigen::Index>(i)] = std::log(value);
    }
  }

  [[nodiscard]] const Eigen::VectorXd& start() const { return start_; }

  [[nodiscard]] SoftwareSpec software(const Eigen::VectorXd& x) const {
    SoftwareSpec out = software_;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i]->set(out, std::exp(x[static_cast<Eigen::Index>(i)]));
    }
    return out;
  }

  void clamp(Eigen::VectorXd& x) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      double& value = x[static_cast<Eigen::Index>(i)];
      value = std::clamp(value, std::log(slots_[i]->low), std::log(slots_[i]->high));
    }
  }

  /// Logarithms of simulated over measured, then the pulls towards the start.
  [[nodiscard]] Result<Eigen::VectorXd> residuals(const Eigen::VectorXd& x) const {
    const SoftwareSpec software_now = software(x);
    std::vector<Result<double>> found(samples_.size(), 0.0);
    run::for_each_parallel(samples_.size(), threads_, [&](std::size_t i) {
      found[i] = residual_of(samples_[i], software_now);
    });
    const auto rows = static_cast<Eigen::Index>(samples_.size());
    Eigen::VectorXd out(rows + x.size());
    for (Eigen::Index i = 0; i < rows; ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(out[i], found[static_cast<std::size_t>(i)]);
    }
    out.tail(x.size()) = kPrior * std::sqrt(static_cast<double>(rows)) * (x - start_);
    return out;
  }

  [[nodiscard]] double mean_error(const Eigen::VectorXd& residuals) const {
    const auto rows = static_cast<Eigen::Index>(samples_.size());
    return (residuals.head(rows).array().exp() - 1).abs().mean();
  }

  [[nodiscard]] Result<Eigen::MatrixXd> jacobian(const Eigen::VectorXd& x,
                                                 const Eigen::VectorXd& at) const {
    Eigen::MatrixXd out(at.size(), x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      Eigen::VectorXd moved = x;
      moved[i] += kStep;
      BUBBLESIM_ASSIGN_OR_RETURN(const Eigen::VectorXd there, residuals(moved));
      out.col(i) = (there - at) / kStep;
    }
    return out;
  }

 private:
  const std::vector<FitSample>& samples_;
  SoftwareSpec software_;
  std::vector<const Slot*> slots_;
  std::size_t threads_;
  Eigen::VectorXd start_;
};

// Residuals of outliers count as their logarithm (Cauchy), so that a few odd rows do not bend
// the rest.
Eigen::VectorXd weights(const Eigen::VectorXd& residuals) {
  constexpr double kScale = 0.05;
  return (1 + (residuals.array() / kScale).square()).inverse().sqrt();
}

double cost(const Eigen::VectorXd& residuals) {
  constexpr double kScale = 0.05;
  return (1 + (residuals.array() / kScale).square()).log().sum();
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
  const Problem problem(samples, software, slots, threads);
  Eigen::VectorXd x = problem.start();
  BUBBLESIM_ASSIGN_OR_RETURN(Eigen::VectorXd r, problem.residuals(x));
  TrainingFit out;
  out.mean_error_before = problem.mean_error(r);
  double damping = 1e-2;
  for (; out.steps < kMostSteps; ++out.steps) {
    BUBBLESIM_ASSIGN_OR_RETURN(const Eigen::MatrixXd j, problem.jacobian(x, r));
    const Eigen::VectorXd w = weights(r);
    const Eigen::MatrixXd jw = w.asDiagonal() * j;
    const Eigen::MatrixXd normal = jw.transpose() * jw;
    const Eigen::VectorXd gradient = jw.transpose() * w.cwiseProduct(r);
    const double before = cost(r);
    bool moved = false;
    for (int attempt = 0; attempt < 6 && !moved; ++attempt, damping *= 4) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() += damping * (normal.diagonal().array() + 1e-6).matrix();
      Eigen::VectorXd next = x - damped.ldlt().solve(gradient);
      problem.clamp(next);
      BUBBLESIM_ASSIGN_OR_RETURN(const Eigen::VectorXd there, problem.residuals(next));
      if (cost(there) >= before) continue;
      x = next;
      r = there;
      moved = true;
      damping /= 40;
    }
    if (progress) progress(out.steps + 1, problem.mean_error(r));
    if (!moved || before - cost(r) < kGoodEnough * before) break;
  }
  out.mean_error_after = problem.mean_error(r);
  out.software = problem.software(x);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    out.constants.push_back({slots[i]->name, std::exp(x[static_cast<Eigen::Index>(i)]),
                             slots[i]->low, slots[i]->high});
  }
  return out;
}

}  // namespace bubblesim::validate

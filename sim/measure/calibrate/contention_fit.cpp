#include "sim/measure/calibrate/contention_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "sim/base/nearest_rank.hpp"
#include "sim/gpu/contention.hpp"
#include "sim/measure/calibrate/least_squares.hpp"

namespace bubblesim::measure {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kStarts = 8;
constexpr double kExact = 1e-4;  ///< root mean square: no other start is needed
constexpr double kStep = 1e-4;   ///< of central differences, where errors are judged

program::KernelProfile profile_of(const Occupant& occupant, const hardware::GpuSpec& spec) {
  return program::profile_kernel(probe_needs(occupant.blocks), occupant.kernel_class, spec);
}

/// Radical inverse (Halton 1960): spread over (0, 1) without chance.
double radical_inverse(std::size_t number, std::size_t prime) {
  double value = 0, unit = 1.0 / static_cast<double>(prime);
  for (; number > 0; number /= prime, unit /= static_cast<double>(prime)) {
    value += static_cast<double>(number % prime) * unit;
  }
  return value;
}
constexpr std::array<std::size_t, 10> kPrimes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29};

FitErrors summary_of(std::vector<double> errors) {
  FitErrors out;
  out.count = errors.size();
  if (errors.empty()) return out;
  for (const double error : errors) out.mean += error / static_cast<double>(errors.size());
  std::ranges::sort(errors);
  out.p50 = interpolated_quantile(errors, 0.5);
  out.p90 = interpolated_quantile(errors, 0.9);
  out.worst = errors.back();
  return out;
}

/// The fit's state: which parameters are free, and what the others are.
class Fitter {
 public:
  Fitter(const std::vector<ContentionCell>& cells, const hardware::GpuSpec& base)
      : spec_(base), all_(contention_parameters()) {
    for (const ContentionCell& cell : cells) {
      if (!cell.held_out) cells_.push_back(&cell);
    }
    for (std::size_t i = 0; i < all_.size(); ++i) free_.push_back(i);
  }

  void fit() {
    if (cells_.empty() || free_.empty()) return;
    refine(values());
    for (std::size_t start = 1; start <= kStarts && rms() > kExact; ++start) {
      VectorXd at(static_cast<Eigen::Index>(free_.size()));
      for (std::size_t i = 0; i < free_.size(); ++i) {
        const double most = std::min(all_[free_[i]].most, 1.0);
        at[static_cast<Eigen::Index>(i)] =
            most * radical_inverse(start, kPrimes[free_[i] % kPrimes.size()]);
      }
      refine(at);
    }
  }
  void drop_unknown(std::vector<FittedParameter>& parameters) {
    std::vector<bool> needed(all_.size(), false);
    while (!free_.empty()) {
      const VectorXd error = errors();
      std::size_t worst = free_.size();
      for (std::size_t i = 0; i < free_.size(); ++i) {
        const double own = error[static_cast<Eigen::Index>(i)];
        parameters[free_[i]].error = own;
        if (own <= kMostParameterError || needed[free_[i]]) continue;
        if (worst == free_.size() || own > error[static_cast<Eigen::Index>(worst)]) worst = i;
      }
      if (worst == free_.size()) return;
      const std::size_t dropped = free_[worst];
      const Fitter before = *this;
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(worst));
      spec_.contention.*all_[dropped].value = parameters[dropped].base;
      if (!free_.empty() && !cells_.empty()) refine(values());
      if (rms() > before.rms() + kContentionNoise / 5) {
        spec_ = before.spec_;
        free_ = before.free_;
        needed[dropped] = true;
        continue;
      }
      parameters[dropped].kept = fmt::format(
          "the grid does not identify it (standard error {:.2g})", parameters[dropped].error);
      parameters[dropped].error = 0;
    }
  }
  [[nodiscard]] const hardware::ContentionSpec& spec() const { return spec_.contention; }
  [[nodiscard]] double condition() const {
    if (free_.empty() || cells_.empty()) return 0;
    const Eigen::JacobiSVD<MatrixXd> svd(jacobian());
    const VectorXd& singular = svd.singularValues();
    const double least = singular[singular.size() - 1];
    return least > 0 ? singular[0] / least : std::numeric_limits<double>::infinity();
  }

 private:
  [[nodiscard]] VectorXd values() const {
    VectorXd out(static_cast<Eigen::Index>(free_.size()));
    for (std::size_t i = 0; i < free_.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] = spec_.contention.*all_[free_[i]].value;
    }
    return out;
  }
  void set(const VectorXd& values) {
    for (std::size_t i = 0; i < free_.size(); ++i) {
      spec_.contention.*all_[free_[i]].value = values[static_cast<Eigen::Index>(i)];
    }
  }
  [[nodiscard]] VectorXd residuals(const VectorXd& values) {
    const hardware::ContentionSpec before = spec_.contention;
    set(values);
    VectorXd out = residuals_now();
    spec_.contention = before;
    return out;
  }
  [[nodiscard]] VectorXd residuals_now() const {
    VectorXd out(static_cast<Eigen::Index>(cells_.size()));
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] =
          predicted_slowdown(*cells_[i], spec_) / cells_[i]->slowdown.middle - 1;
    }
    return out;
  }
  [[nodiscard]] double rms() const {
    const VectorXd r = residuals_now();
    return r.size() == 0 ? 0 : std::sqrt(r.squaredNorm() / static_cast<double>(r.size()));
  }
  /// Keeps what it finds if that is better than what there is.
  bool refine(const VectorXd& start) {
    VectorXd low = VectorXd::Zero(start.size()), high(start.size());
    for (std::size_t i = 0; i < free_.size(); ++i) {
      high[static_cast<Eigen::Index>(i)] = all_[free_[i]].most;
    }
    const double before = rms();
    const hardware::ContentionSpec kept = spec_.contention;
    const auto found = fit_least_squares(
        [this](const VectorXd& at) { return residuals(at); }, start, low, high);
    if (found) set(found->parameters);
    if (found && rms() < before) return true;
    spec_.contention = kept;
    return false;
  }
  [[nodiscard]] MatrixXd jacobian() const {
    MatrixXd out(static_cast<Eigen::Index>(cells_.size()), static_cast<Eigen::Index>(free_.size()));
    Fitter moved = *this;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      double& value = moved.spec_.contention.*all_[free_[i]].value;
      const double here = value;
      value = here + kStep;
      const VectorXd above = moved.residuals_now();
      value = here - kStep;
      const VectorXd below = moved.residuals_now();
      value = here;
      out.col(static_cast<Eigen::Index>(i)) = (above - below) / (2 * kStep);
    }
    return out;
  }
  /// Standard errors, as if each slowdown were known to the noise at best.
  [[nodiscard]] VectorXd errors() const {
    const MatrixXd j = jacobian();
    MatrixXd normal = j.transpose() * j;
    normal.diagonal().array() += 1e-9;
    const double noise = std::max(kContentionNoise, rms());
    return noise * normal.ldlt()
                       .solve(MatrixXd::Identity(normal.rows(), normal.cols()))
                       .diagonal()
                       .cwiseMax(0)
                       .cwiseSqrt();
  }

  hardware::GpuSpec spec_;
  const std::vector<ContentionParameter>& all_;
  std::vector<const ContentionCell*> cells_;
  std::vector<std::size_t> free_;
};

}  // namespace

const std::vector<ContentionParameter>& contention_parameters() {
  using Spec = hardware::ContentionSpec;
  static const std::vector<ContentionParameter> list{
      {"compute_kernel_dram_share", &Spec::compute_kernel_dram_share, 1},
      {"memory_kernel_dram_share", &Spec::memory_kernel_dram_share, 1},
      {"unknown_kernel_dram_share", &Spec::unknown_kernel_dram_share, 1},
      {"compute_kernel_issue_share", &Spec::compute_kernel_issue_share, 1},
      {"memory_kernel_issue_share", &Spec::memory_kernel_issue_share, 1},
      {"unknown_kernel_issue_share", &Spec::unknown_kernel_issue_share, 1},
      {"compute_kernel_memory_boundness", &Spec::compute_kernel_memory_boundness, 1},
      {"memory_kernel_memory_boundness", &Spec::memory_kernel_memory_boundness, 1},
      {"unknown_kernel_memory_boundness", &Spec::unknown_kernel_memory_boundness, 1},
      {"l2_slowdown", &Spec::l2_slowdown, 10}};
  return list;
}

double predicted_slowdown(const ContentionCell& cell, const hardware::GpuSpec& spec) {
  const gpu::Contention contention(spec.contention, spec.sm_count);
  gpu::DemandSum demands;
  demands.set_clients(cell.others.size() + 1);
  const auto add = [&](std::uint32_t client, const Occupant& occupant) {
    const program::KernelProfile profile = profile_of(occupant, spec);
    const std::uint64_t wave =
        std::min(occupant.blocks, std::uint64_t{profile.residency.blocks_per_sm} * spec.sm_count);
    const double sm_share = contention.sm_share(wave);
    demands.add(ClientId{client}, gpu::Contention::demand(profile, wave, wave, sm_share));
  };
  add(0, cell.victim);
  for (std::uint32_t i = 0; i < cell.others.size(); ++i) add(i + 1, cell.others[i]);
  const gpu::Pressure all = contention.pressure(demands.total());
  return 1 / contention.rate(all, demands.demand_of(ClientId{0}).dram, cell.victim.kernel_class);
}

ContentionFit fit_contention(const std::vector<ContentionCell>& cells,
                             const hardware::GpuSpec& base) {
  ContentionFit out;
  Fitter fitter(cells, base);
  for (const ContentionParameter& parameter : contention_parameters()) {
    const double value = base.contention.*parameter.value;
    out.parameters.push_back({parameter.key, value, value, 0, {}});
  }
  fitter.fit();
  fitter.drop_unknown(out.parameters);
  out.spec = fitter.spec();
  out.condition = fitter.condition();
  for (std::size_t i = 0; i < out.parameters.size(); ++i) {
    out.parameters[i].value = out.spec.*contention_parameters()[i].value;
  }
  hardware::GpuSpec fitted = base;
  fitted.contention = out.spec;
  std::vector<double> seen, judged, before;
  for (const ContentionCell& cell : cells) {
    out.predicted.push_back(predicted_slowdown(cell, fitted));
    const double measured = cell.slowdown.middle;
    (cell.held_out ? judged : seen).push_back(std::abs(out.predicted.back() / measured - 1));
    if (cell.held_out) before.push_back(std::abs(predicted_slowdown(cell, base) / measured - 1));
  }
  out.fitted = summary_of(std::move(seen));
  out.held_out = summary_of(std::move(judged));
  out.base = summary_of(std::move(before));
  return out;
}

namespace {

using capture::OperationRecord;
using program::KernelClass;

constexpr std::array kClasses{KernelClass::kCompute, KernelClass::kMemory, KernelClass::kUnknown};
constexpr std::uint64_t kQuarters = 4;  ///< of the SMs: the sizes of aggressors
constexpr std::size_t kForms = kClasses.size() * kQuarters;

constexpr Duration kVictim = std::chrono::microseconds(100);
// All victims in turn, even when slowed threefold.
constexpr Duration kFirstLength = std::chrono::milliseconds(4);
constexpr Duration kFirstPause = std::chrono::milliseconds(2);
constexpr Duration kSecondLength = std::chrono::milliseconds(10);
// As long as the first one's round.
constexpr std::size_t kSecondRow = 10;
constexpr Duration kSecondPause = std::chrono::milliseconds(100);
constexpr Duration kGridLength = std::chrono::milliseconds(2400);

/// By number, below kForms.
Occupant occupant(std::size_t form, const hardware::GpuSpec& spec) {
  const std::uint64_t quarters = form % kQuarters + 1;
  return {kClasses[form / kQuarters],
          std::max<std::uint64_t>(1, spec.sm_count * quarters / kQuarters)};
}
/// The second aggressor's.
Occupant filler(std::size_t form, const hardware::GpuSpec& spec) {
  return {kClasses[form], spec.sm_count};
}

ProbeKernel kernel(const Occupant& occupant, Duration solo, const hardware::GpuSpec& spec) {
  return {probe_form(occupant.blocks, occupant.kernel_class, spec), solo};
}

capture::JobPlan victims(const hardware::GpuSpec& spec) {
  std::vector<ProbeKernel> kernels;
  for (std::size_t form = 0; form < kForms; ++form) {
    kernels.push_back(kernel(occupant(form, spec), kVictim, spec));
  }
  ProbePlan plan("victims", 0);
  plan.row(kernels);
  return plan.take(0);
}

capture::JobPlan first_aggressor(const hardware::GpuSpec& spec) {
  ProbePlan plan("first aggressor", 1);
  for (std::size_t form = 0; form < kForms; ++form) {
    plan.launch(kernel(occupant(form, spec), kFirstLength, spec));
    plan.wait();
    plan.pause(kFirstPause);
  }
  return plan.take(0);
}

capture::JobPlan second_aggressor(const hardware::GpuSpec& spec) {
  ProbePlan plan("second aggressor", 2);
  for (std::size_t form = 0; form < kClasses.size(); ++form) {
    plan.pause(kSecondPause);
    const ProbeKernel filling = kernel(filler(form, spec), kSecondLength, spec);
    for (std::size_t i = 0; i < kSecondRow; ++i) plan.launch(filling);
    plan.wait();
  }
  return plan.take(0);
}

/// Which of an aggressor's operations ran throughout. Nothing: it began or ended meanwhile.
struct Beside {
  bool anybody = false;
  std::uint32_t op = 0;
};
std::optional<Beside> operation_beside(const OperationRecord& victim,
                                       const std::vector<OperationRecord>& aggressor) {
  const auto next = std::ranges::upper_bound(aggressor, victim.start, {}, &OperationRecord::start);
  if (next != aggressor.begin()) {
    const OperationRecord& before = *std::prev(next);
    if (before.end >= victim.end) return Beside{true, before.op};
    if (before.end > victim.start) return std::nullopt;
  }
  if (next != aggressor.end() && next->start < victim.end) return std::nullopt;
  return Beside{};
}

/// Victim's form, the first aggressor's and the second's; kForms: neither.
using Place = std::array<std::size_t, 3>;

std::map<Place, std::vector<double>> lengths_by_place(const Records& records) {
  const auto first = by_start(records[1]), second = by_start(records[2]);
  std::map<Place, std::vector<double>> lengths;
  for (const OperationRecord& victim : records[0].operations) {
    const auto near_first = operation_beside(victim, first),
               near_second = operation_beside(victim, second);
    if (!near_first || !near_second) continue;
    lengths[{victim.op % kForms, near_first->anybody ? near_first->op : kForms,
             near_second->anybody ? near_second->op / kSecondRow : kForms}]
        .push_back(length_of(victim));
  }
  return lengths;
}

}  // namespace

RigSetup contention_run(const hardware::GpuSpec& spec) {
  RigSetup run = probe_run(policy::SharingMode::kSpatial,
                           {victims(spec), first_aggressor(spec), second_aggressor(spec)});
  run.limit = kGridLength;
  return run;
}

std::vector<ContentionCell> contention_cells(const Records& records,
                                             const hardware::GpuSpec& spec) {
  std::vector<ContentionCell> cells;
  if (records.size() != 3) return cells;
  auto lengths = lengths_by_place(records);
  for (auto& [place, values] : lengths) {
    const auto [victim, first, second] = place;
    if (first == kForms && second == kForms) continue;
    const auto alone = lengths.find({victim, kForms, kForms});
    if (alone == lengths.end() || values.size() < kLeastInCell) continue;
    const double length = spread_of(alone->second).middle;
    if (length <= 0) continue;
    ContentionCell cell{occupant(victim, spec), {}, {}, (victim + first + second) % 2 == 1};
    if (first != kForms) cell.others.push_back(occupant(first, spec));
    if (second != kForms) cell.others.push_back(filler(second, spec));
    std::vector<double> slowdowns = values;
    for (double& slowdown : slowdowns) slowdown /= length;
    cell.slowdown = spread_of(std::move(slowdowns));
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace bubblesim::measure

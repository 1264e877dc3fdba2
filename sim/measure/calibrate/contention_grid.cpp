#include "sim/measure/calibrate/contention_grid.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace bubblesim::measure {
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

ProbeRun contention_run(const hardware::GpuSpec& spec) {
  ProbeRun run = probe_run(policy::SharingMode::kSpatial,
                           {victims(spec), first_aggressor(spec), second_aggressor(spec)});
  run.setup.limit = kGridLength;
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

#include "sim/measure/calibrate/probes.hpp"

#include "sim/measure/calibrate/probe_plan.hpp"

namespace bubblesim::measure {
namespace {

using capture::OperationRecord;

constexpr std::uint64_t kLatencyPasses = 120;
constexpr Duration kIdle = std::chrono::microseconds(100);
constexpr Duration kLone = std::chrono::microseconds(30);
// The row's calls come back while this one runs: some 5 us each.
constexpr Duration kLong = std::chrono::microseconds(300);
constexpr Duration kShort = std::chrono::microseconds(20);
constexpr std::uint32_t kRow = 16;
/// Operations of a pass: the two lone kernels, then the long one and its row.
constexpr std::uint32_t kFirst = 0;
constexpr std::uint32_t kSecond = 1;
constexpr std::uint32_t kInRow = 3;  ///< from here on

double ns_between(Duration from, Duration to) { return static_cast<double>(to_ns(to - from)); }

/// When the launch call was over; an operation may end before its record knows.
Duration returned(const OperationRecord& operation) {
  return std::max(operation.returned, operation.called);
}

}  // namespace

ProbeRun latency_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form = probe_form(spec.sm_count, program::KernelClass::kCompute, spec);
  ProbePlan plan("latencies", 0);
  plan.pause(kIdle);
  plan.launch({form, kLone});
  plan.wait();
  plan.launch({form, kLone});
  plan.wait();
  plan.launch({form, kLong});
  for (std::uint32_t i = 0; i < kRow; ++i) plan.launch({form, kShort});
  plan.wait();
  return probe_run(policy::SharingMode::kSpatial, {plan.take(kLatencyPasses)});
}

std::vector<Finding> latency_findings(const Records& records) {
  std::vector<double> launch, gap, sync, notice;
  const std::vector<OperationRecord> list = by_start(records.front());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const OperationRecord& now = list[i];
    // Behind a longer wait the process looks less often, by its own choice.
    const bool lone = now.op == kFirst || now.op == kSecond;
    if (lone && now.noticed >= now.end && now.noticed > Duration{}) {
      notice.push_back(ns_between(now.end, now.noticed));
    }
    const bool follows = i > 0 && list[i - 1].pass == now.pass && list[i - 1].op + 1 == now.op;
    if (now.op == kFirst || (now.op == kSecond && follows)) {
      launch.push_back(ns_between(returned(now), now.start));
    }
    if (!follows) continue;
    const OperationRecord& before = list[i - 1];
    if (now.op == kSecond) sync.push_back(ns_between(before.end, now.called));
    if (now.op >= kInRow && returned(now) < before.start) {
      gap.push_back(ns_between(before.end, now.start));
    }
  }
  return {at_least_zero(finding_of("launch_latency", std::move(launch), kTimeGrain)),
          finding_of("stream_gap", std::move(gap), kTimeGrain),
          finding_of("sync_latency", std::move(sync), kTimeGrain),
          finding_of("completion_notice", std::move(notice), kTimeGrain)};
}

}  // namespace bubblesim::measure

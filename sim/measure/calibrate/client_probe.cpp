#include <algorithm>
#include <array>

#include "sim/measure/calibrate/probe_plan.hpp"
#include "sim/measure/calibrate/probes.hpp"

namespace bubblesim::measure {
namespace {

constexpr Duration kAlone = std::chrono::milliseconds(40);
constexpr Duration kClientLength = std::chrono::milliseconds(240);
constexpr Duration kSmall = std::chrono::microseconds(5);
// No multiples of each other: who comes when changes all the time.
constexpr std::array<Duration, 2> kClientPauses{std::chrono::microseconds(90),
                                          std::chrono::microseconds(131)};

/// A launch, as the device's front end sees it.
struct Launch {
  Duration returned{};
  double latency = 0;  ///< ns, from there to the start
  std::size_t client = 0;
};

std::vector<Launch> launches_of(const Records& records) {
  std::vector<Launch> out;
  for (std::size_t client = 0; client < records.size(); ++client) {
    for (const auto& operation : records[client].operations) {
      const Duration returned = std::max(operation.returned, operation.called);
      out.push_back({returned, static_cast<double>(to_ns(operation.start - returned)), client});
    }
  }
  std::ranges::stable_sort(out, {}, &Launch::returned);
  return out;
}

}  // namespace

ProbeRun client_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form =
      probe_form(std::max(1U, spec.sm_count / 4), program::KernelClass::kCompute, spec);
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan("clients " + std::to_string(client), client);
    plan.pause(kClientPauses[client]);
    plan.launch({form, kSmall});
    plan.wait();
    plans.push_back(plan.take(0, client * kAlone));
  }
  ProbeRun run = probe_run(policy::SharingMode::kMps, std::move(plans));
  run.setup.limit = kClientLength;
  return run;
}

// Each client's device times are on the host's clock by an offset of its own measuring: only
// launches of one client are compared.
std::vector<Finding> client_findings(const Records& records) {
  const std::vector<Launch> launches = launches_of(records);
  std::vector<double> delays;
  for (std::size_t client = 0; client < records.size(); ++client) {
    std::vector<double> own, others;
    for (std::size_t i = 1; i < launches.size(); ++i) {
      if (launches[i].client != client) continue;
      (launches[i - 1].client == client ? own : others).push_back(launches[i].latency);
    }
    const Spread after_own = spread_of(std::move(own));
    if (after_own.count < kLeastCount) continue;
    for (const double latency : others) delays.push_back(latency - after_own.middle);
  }
  return {at_least_zero(finding_of("client_switch", std::move(delays), kTimeGrain))};
}

}  // namespace bubblesim::measure

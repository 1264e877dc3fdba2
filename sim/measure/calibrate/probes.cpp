#include "sim/measure/calibrate/probes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

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

RigSetup latency_run(const hardware::GpuSpec& spec) {
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

namespace {

using capture::CopyPath;

constexpr std::uint64_t kCopyPasses = 16;
// Multiples of the pieces in which long copies are made (capture/replay/cuda); within the device
// far more than its L2 cache holds.
constexpr std::uint64_t kMiB = 1ULL << 20;

struct Sizes {
  CopyPath path;
  std::uint64_t small;
  std::uint64_t large;
};
constexpr std::array<Sizes, 3> kSizes{{{CopyPath::kHostToDevice, 64 * kMiB, 192 * kMiB},
                                       {CopyPath::kDeviceToHost, 64 * kMiB, 192 * kMiB},
                                       {CopyPath::kDeviceToDevice, 512 * kMiB, 1536 * kMiB}}};

}  // namespace

RigSetup copy_run(const hardware::GpuSpec&) {
  ProbePlan plan("copies", 0);
  for (const Sizes& sizes : kSizes) {
    for (const std::uint64_t bytes : {sizes.small, sizes.large}) {
      plan.copy(sizes.path, Bytes{bytes});
      plan.wait();
    }
  }
  return probe_run(policy::SharingMode::kSpatial, {plan.take(kCopyPasses)});
}

std::vector<Finding> copy_findings(const Records& records, const hardware::GpuSpec& base) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, double> length;  // by pass and operation
  for (const capture::OperationRecord& copy : records.front().operations) {
    length[{copy.pass, copy.op}] = length_of(copy);
  }
  std::vector<double> host, dram;
  for (const auto& [place, small] : length) {
    const auto& [pass, op] = place;
    const auto large = length.find({pass, op + 1});
    if (op % 2 != 0 || large == length.end() || large->second <= small) continue;
    const Sizes& sizes = kSizes[op / 2];
    const double rate =
        static_cast<double>(sizes.large - sizes.small) / ((large->second - small) * 1e-9);
    if (sizes.path == CopyPath::kDeviceToDevice) {
      dram.push_back(2 * rate / base.dram_bandwidth.value);
    } else {
      host.push_back(rate);
    }
  }
  Finding reach = finding_of("dram_reach", std::move(dram), 0);
  if (reach.missing.empty() && reach.spread.middle > 1) {
    reach.missing = "copies move more than the base's dram_bandwidth: it is another card's";
  }
  return {std::move(reach),
          finding_of("host_bandwidth", std::move(host), 0)};
}

namespace {

/// Two clients of MPS, each with this kernel after a pause, again and again; the second comes
/// `later`.
RigSetup two_clients(const std::string& name, const ProbeKernel& kernel,
                     const std::array<Duration, 2>& pauses, Duration later, Duration limit) {
  std::vector<capture::JobPlan> plans;
  for (std::uint32_t client = 0; client < 2; ++client) {
    ProbePlan plan(name + " " + std::to_string(client), client);
    plan.pause(pauses[client]);
    plan.launch(kernel);
    plan.wait();
    plans.push_back(plan.take(0, client * later));
  }
  RigSetup run = probe_run(policy::SharingMode::kMps, std::move(plans));
  run.limit = limit;
  return run;
}

constexpr Duration kOrderLength = std::chrono::milliseconds(240);
constexpr std::uint64_t kOrderWaves = 40;
constexpr Duration kOrderKernel = std::chrono::milliseconds(1);
constexpr std::array<Duration, 2> kOrderPauses{std::chrono::microseconds(310),
                                          std::chrono::microseconds(730)};
// Share left of the other's kernel: less is too close to its last wave to tell.
constexpr double kLeastLeft = 0.2;
constexpr double kOrderGrain = 0.5;

}  // namespace

RigSetup order_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form =
      lone_block_form(kOrderWaves * spec.sm_count, program::KernelClass::kCompute, spec);
  return two_clients("order", {form, kOrderKernel}, kOrderPauses, {}, kOrderLength);
}

std::vector<Finding> order_findings(const Records& records) {
  std::vector<double> in_line;
  for (std::size_t client = 0; records.size() == 2 && client < 2; ++client) {
    for (const OperationRecord& second : records[client].operations) {
      for (const OperationRecord& first : records[1 - client].operations) {
        if (first.start > second.returned || first.end < second.returned) continue;
        const double left = static_cast<double>(to_ns(first.end - second.returned));
        if (left < kLeastLeft * static_cast<double>(to_ns(kOrderKernel))) continue;
        const double waited = static_cast<double>(to_ns(second.start - second.returned));
        in_line.push_back(2 * waited > left ? 1 : 0);
      }
    }
  }
  return {finding_of("client_order", std::move(in_line), kOrderGrain)};
}

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

RigSetup client_run(const hardware::GpuSpec& spec) {
  const capture::KernelForm form =
      probe_form(std::max(1U, spec.sm_count / 4), program::KernelClass::kCompute, spec);
  return two_clients("clients", {form, kSmall}, kClientPauses, kAlone, kClientLength);
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

#include <unistd.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/measure/calibrate/calibrate.hpp"
#include "sim/measure/calibrate/probes.hpp"
#include "tests/fault.hpp"

namespace bubblesim::measure {
namespace {

capture::OperationRecord operation(std::uint32_t op, std::uint64_t pass, std::int64_t called,
                                   std::int64_t start, std::int64_t end) {
  return {op, pass, Duration{called}, Duration{start}, Duration{end}, Duration{called + 100},
          Duration{end + 3000}};
}

const Finding& find(const std::vector<Finding>& findings, const std::string& key) {
  for (const Finding& finding : findings) {
    if (finding.key == key) return finding;
  }
  static const Finding none{"none", {}, "not there"};
  return none;
}

TEST(Spread, QuartilesLieBetweenTheValues) {
  // 1 2 3 4 5: a quarter of the way from the first to the last is 2.
  EXPECT_EQ(spread_of({5, 1, 4, 2, 3}), (Spread{5, 2, 3, 4}));
  EXPECT_EQ(spread_of({1, 2}), (Spread{2, 1.25, 1.5, 1.75}));
  EXPECT_EQ(spread_of({}), Spread{});
}

TEST(Finding, TooFewOrTooDifferentValuesAreNone) {
  EXPECT_NE(finding_of("x", std::vector<double>(7, 1.0), 0).missing, "");
  EXPECT_EQ(finding_of("x", std::vector<double>(8, 1.0), 0).missing, "");
  // Middle half from 1000 to 3000, median 2000: as wide as the median.
  const std::vector<double> wide{0, 1000, 1000, 2000, 2000, 2000, 3000, 3000, 4000};
  EXPECT_NE(finding_of("x", wide, kTimeGrain).missing, "");
  EXPECT_EQ(finding_of("x", wide, 2000).missing, "");
}

TEST(Finding, ASpanAroundZeroIsFoundAndNotNegative) {
  const auto around = [](double middle) {
    return at_least_zero(finding_of(
        "x", {middle - 1100, middle - 1100, middle - 1100, middle, middle, middle, middle + 1100,
              middle + 1100, middle + 1100}, kTimeGrain));
  };
  EXPECT_EQ(around(-600).missing, "");
  EXPECT_EQ(around(-600).spread, (Spread{9, -1700, 0, 500}));
  EXPECT_EQ(around(200).missing, "");
  EXPECT_EQ(around(200).spread, (Spread{9, -900, 200, 1300}));
  EXPECT_NE(around(-1200).missing, "");  // quartiles -2300 and -100
  EXPECT_EQ(around(3000).spread, (Spread{9, 1900, 3000, 4100}));
}

TEST(LatencyProbe, NoticesOfTheRowDoNotCount) {
  capture::JobRecord record;
  for (std::uint64_t pass = 0; pass < 10; ++pass) {
    record.operations.push_back(operation(0, pass, 0, 1300, 31'300));
    auto late = operation(3, pass, 40'000, 50'000, 70'000);
    late.noticed = late.end + Duration{static_cast<std::int64_t>(pass) * 8'000};
    record.operations.push_back(late);
  }
  EXPECT_EQ(find(latency_findings({record}), "completion_notice").spread,
            (Spread{10, 3000, 3000, 3000}));
}

// A pass of 1 ms: a kernel at 1000 called at 0, one after its wait at 40 us, then a long one with
// two of its row: the first waits for the long one, the second for the first.
capture::JobRecord latency_record(std::uint64_t passes) {
  capture::JobRecord record;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    const auto t = static_cast<std::int64_t>(pass) * 1'000'000;
    record.operations.push_back(operation(0, pass, t, t + 1300, t + 31'300));
    record.operations.push_back(operation(1, pass, t + 38'300, t + 39'600, t + 69'600));
    record.operations.push_back(operation(2, pass, t + 80'000, t + 81'300, t + 381'300));
    record.operations.push_back(operation(3, pass, t + 80'200, t + 382'500, t + 402'500));
    record.operations.push_back(operation(4, pass, t + 80'300, t + 403'700, t + 423'700));
  }
  return record;
}

TEST(LatencyProbe, EachLatencyIsBetweenItsTwoInstants) {
  const auto found = latency_findings({latency_record(10)});
  // Launch calls take 100 ns, kernels start 1300 ns after the call.
  EXPECT_EQ(find(found, "launch_latency").spread, (Spread{20, 1200, 1200, 1200}));
  // From 31,300 to the next call at 38,300.
  EXPECT_EQ(find(found, "sync_latency").spread, (Spread{10, 7000, 7000, 7000}));
  EXPECT_EQ(find(found, "stream_gap").spread, (Spread{20, 1200, 1200, 1200}));
  EXPECT_EQ(find(found, "completion_notice").spread, (Spread{20, 3000, 3000, 3000}));
}

TEST(LatencyProbe, GapsOfKernelsThatWereLaunchedLateDoNotCount) {
  capture::JobRecord record = latency_record(10);
  for (auto& operation : record.operations) {
    if (operation.op == 4) operation.called = operation.returned = operation.start - Duration{500};
  }
  EXPECT_EQ(find(latency_findings({record}), "stream_gap").spread.count, 10U);
}

TEST(LatencyProbe, WithoutRecordsNothingIsFound) {
  for (const Finding& finding : latency_findings({capture::JobRecord{}})) {
    EXPECT_NE(finding.missing, "") << finding.key;
  }
}

TEST(CopyProbe, WhatTheLongerCopyTakesMoreIsWhatItsBytesTake) {
  capture::JobRecord record;
  for (std::uint64_t pass = 0; pass < 8; ++pass) {
    // 128 MiB more in 2 ms, 1 GiB more in 1 ms; 10 us of each copy is no matter of bytes.
    for (std::uint32_t op = 0; op < 6; ++op) {
      const std::int64_t small = op < 4 ? 1'010'000 : 510'000;
      const std::int64_t more = op % 2 == 0 ? 0 : op < 4 ? 2'000'000 : 1'000'000;
      record.operations.push_back(operation(op, pass, 0, 0, small + more));
    }
  }
  hardware::GpuSpec base;
  base.dram_bandwidth.value = 4 * 1024.0 * 1048576 / 1e-3;
  const auto found = copy_findings({record}, base);
  EXPECT_DOUBLE_EQ(find(found, "host_bandwidth").spread.middle, 128.0 * 1048576 / 2e-3);
  EXPECT_EQ(find(found, "host_bandwidth").spread.count, 16U);
  EXPECT_DOUBLE_EQ(find(found, "dram_reach").spread.middle, 0.5) << "read and written";
}

TEST(ClientProbe, ASwitchIsHowMuchLaterAKernelStartsAfterAnothersLaunch) {
  Records records(2);
  std::int64_t now = 0;
  const auto launch = [&](std::size_t client, std::int64_t latency) {
    const std::int64_t start = now + 100 + latency;  // a call takes 100
    records[client].operations.push_back(operation(0, 0, now, start, start + 5000));
    now += 50'000;
  };
  for (int i = 0; i < 10; ++i) launch(0, 2000);
  for (int i = 0; i < 20; ++i) launch(i % 2 == 0 ? 1 : 0, 22'000);
  const auto found = client_findings(records);
  // The second client never follows itself: nothing to compare its ten with.
  EXPECT_EQ(find(found, "client_switch").spread, (Spread{10, 20'000, 20'000, 20'000}));
  EXPECT_NE(client_findings({records[0]}).front().missing, "");
}

TEST(OrderProbe, AFirstBlockThatWaitsForTheOthersLastIsInLine) {
  Records in_line(2), even(2);
  for (std::int64_t now = 0; now < 40'000'000; now += 4'000'000) {
    // Called 400 us into a kernel of 1 ms.
    in_line[0].operations.push_back(operation(0, 0, now, now, now + 1'000'000));
    in_line[1].operations.push_back(operation(0, 0, now + 400'000, now + 980'000, now + 1'980'000));
    even[0].operations.push_back(operation(0, 0, now, now, now + 1'600'000));
    even[1].operations.push_back(operation(0, 0, now + 400'000, now + 425'000, now + 1'980'000));
  }
  EXPECT_EQ(order_findings(in_line).front().spread, (Spread{10, 1, 1, 1}));
  EXPECT_EQ(order_findings(even).front().spread, (Spread{10, 0, 0, 0}));
  EXPECT_EQ(order_findings(even).front().missing, "");
  EXPECT_NE(order_findings({even[0]}).front().missing, "");
}

TEST(PartProbe, TheModelsOwnTimesGiveItsConstants) {
  // 108 SMs; bound by DRAM alone, and not at all: m(1/2) x 2 with a = 0.4, and 2 / 1.1.
  hardware::GpuSpec spec;
  spec.sm_count = 108;
  spec.contention.memory_kernel_memory_boundness = 1;
  spec.contention.compute_kernel_memory_boundness = 0;
  std::vector<PartTime> parts;
  for (const std::uint32_t sms : {108U, 72U, 54U, 36U}) {
    const double s = sms / 108.0;
    const double waves = std::ceil(60 * 108.0 / sms) / 60;
    const double m = std::pow((std::pow(s, 4) + std::pow(0.4, 4)) / (1 + std::pow(0.4, 4)), 0.25);
    parts.push_back({program::KernelClass::kMemory, sms, waves, waves * m});
    parts.push_back({program::KernelClass::kCompute, sms, waves,
                     waves / std::min(1.1, 1 / std::cbrt(s))});
  }
  const auto found = part_findings(parts, spec);
  EXPECT_NEAR(find(found, "part/dram_saturating_sms").spread.middle, 0.4, 1e-3);
  EXPECT_NEAR(find(found, "part/dark_clock_gain").spread.middle, 1.1, 1e-3);
  parts.resize(3);
  EXPECT_NE(part_findings(parts, spec).front().missing, "");
}

TEST(SmProbe, WavesSayHowManySms) {
  hardware::GpuSpec spec;
  spec.sm_count = 8;  // 64 blocks: 8 waves of 8
  spec.sm.shared_memory_bytes = 65536;
  RigSetup run = sm_run(spec);
  Records records(run.jobs.size());
  std::int64_t now = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    // Steps of 2 of 8 SMs: 50 % gives 4, so 16 waves of 20 us.
    const std::uint32_t percentage = run.shares[i].sm_percentage;
    const std::uint32_t sms = std::max(2U, 8 * percentage / 200 * 2);
    const std::int64_t length = (64 + sms - 1) / sms * 20'000;
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      records[i].operations.push_back(operation(0, pass, now, now, now + length));
      now += length;
    }
  }
  auto shares = sm_shares(run, records);
  for (const SmShare& share : shares) EXPECT_EQ(share.count, 2U);
  const Finding found = tpc_finding(shares, spec);
  EXPECT_EQ(found.missing, "");
  EXPECT_EQ(found.spread.middle, 2);
  EXPECT_EQ(shares[0].sms, 8U);
}

TEST(SmProbe, ExecutionsBesideOthersDoNotCount) {
  hardware::GpuSpec spec;
  spec.sm_count = 8;
  RigSetup run = sm_run(spec);
  Records records(run.jobs.size());
  for (auto& record : records) record.operations.push_back(operation(0, 1, 0, 0, 1000));
  auto shares = sm_shares(run, records);
  for (const SmShare& share : shares) EXPECT_EQ(share.count, 0U);
  EXPECT_NE(tpc_finding(shares, spec).missing, "");
}

constexpr std::int64_t kKernel = 101'000;  ///< 100 us and a gap of 1 us
constexpr std::int64_t kSlice = 1'000'000;
constexpr std::int64_t kSwitch = 40'000;

/// Two processes in turn, `turns` each: slices, then the switch, the other's slice, the switch
/// back. On a process's own time kernels end every 101 us and absences begin every 1 ms.
capture::JobRecord row(int first, int turns) {
  capture::JobRecord record;
  const std::int64_t away = kSlice + 2 * kSwitch;
  const std::int64_t own_end = turns * kSlice;
  const std::int64_t origin = first * (kSlice + kSwitch);
  std::uint32_t op = 0;
  const auto on_device = [&](std::int64_t own) { return origin + own + own / kSlice * away; };
  for (std::int64_t own = 0; own + kKernel < own_end; own += kKernel) {
    const std::int64_t start = on_device(own);
    const std::int64_t end = on_device(own + kKernel - 1000);
    record.operations.push_back({op++, 0, Duration{0}, Duration{start}, Duration{end}, {}, {}});
  }
  return record;
}

TEST(SliceProbe, AbsencesAndTheirDistanceOnTheProcessOwnTime) {
  const auto found = slice_findings({row(0, 40), row(1, 40)});
  EXPECT_NEAR(found.at(0).spread.middle, kSlice, 1'000);
  // 39 absences of each of 1,080 us: the other's slice and two switches.
  EXPECT_EQ(found.at(1).spread.count, 78U);
  EXPECT_NEAR(found.at(1).spread.low, kSwitch, 500);
  EXPECT_NEAR(found.at(1).spread.high, kSwitch, 500);
}

TEST(SliceProbe, SliceAndSwitchOfTwoProcesses) {
  const auto found = slice_findings({row(0, 200), row(1, 200)});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].missing, "");
  EXPECT_NEAR(found[0].spread.middle, kSlice, 100);
  EXPECT_EQ(found[1].missing, "");
  EXPECT_NEAR(found[1].spread.middle, kSwitch, 100);
}

TEST(SliceProbe, KernelsSideBySideHaveNoSlices) {
  capture::JobRecord record;
  for (std::uint32_t i = 0; i < 500; ++i) {
    record.operations.push_back(
        {i, 0, {}, Duration{i * 200'000}, Duration{i * 200'000 + 199'000}, {}, {}});
  }
  for (const Finding& finding : slice_findings({record, record})) {
    EXPECT_NE(finding.missing, "") << finding.key;
  }
}

TEST(SliceProbe, OneProcessAloneSaysNothing) {
  EXPECT_NE(find(slice_findings({row(0, 200)}), "context_switch").missing, "");
}

const std::string kBase = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices/h100.json";

Calibration calibration() {
  Calibration out;
  out.constants = {
      {"launch_latency", ConstantUnit::kNanoseconds, 1260, 1411.4, {120, 1400, 1411.4, 1420}, ""},
      {"stream_gap", ConstantUnit::kNanoseconds, 1245, 1245, {3, 1, 2, 3}, "3 measurements"},
      {"dram_reach", ConstantUnit::kPeakShare, 0.8362, 0.8765432,
       {16, 0.8712, 0.8765432, 0.8801}, ""},
      {"tpc_sms", ConstantUnit::kSms, 2, 4, {12, 4, 4, 4}, ""},
      {"contention/l2_slowdown", ConstantUnit::kShare, 0.2, 0.312345, {99, 0.3, 0.312345, 0.33},
       ""}};
  return out;
}

CheckedResult<hardware::DeviceFile> read_back(const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("calibrated." + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << text;
  auto device = hardware::read_device_file(path);
  (void)std::remove(path.c_str());
  return device;
}

TEST(CalibratedFile, ReadsBackWithTheMeasuredConstantsAndTheBasesOthers) {
  const CalibrationOrigin origin{"2026-11-22", "NVIDIA H100 80GB HBM3", "580.1", false};
  const auto text = must(calibrated_device_text(kBase, calibration(), origin, std::nullopt));
  const auto device = must(read_back(text));
  EXPECT_EQ(device.spec.launch_latency, Duration{1411});
  EXPECT_EQ(device.spec.stream_gap, Duration{1245});
  EXPECT_EQ(device.spec.dram_reach, 0.8765);
  EXPECT_NE(text.find("n=16, quartiles 0.8712 to 0.8801"), std::string::npos);
  EXPECT_EQ(device.spec.tpc_sms, 4U);
  EXPECT_EQ(device.spec.contention.l2_slowdown, 0.3123);
  EXPECT_EQ(device.spec.contention.compute_kernel_dram_share, 0.2);
  EXPECT_EQ(device.recorded_names.size(), 1U);
  EXPECT_NE(text.find("measured: bubblesim calibrate, 2026-11-22, NVIDIA H100 80GB HBM3, driver "
                       "580.1, n=120, quartiles 1.4us to 1.42us"),
            std::string::npos);
}

TEST(CalibratedFile, AnEmptySwitchCostsNoMoreThanTheMeasuredOne) {
  // The base has 152 us.
  Calibration measured = calibration();
  measured.constants.push_back(
      {"context_switch", ConstantUnit::kNanoseconds, 227e3, 1e5, {9, 1e5, 1e5, 1e5}, ""});
  measured.spec.context_switch = Duration{100'000};
  measured.spec.context_switch_empty = Duration{152'000};
  const auto text = must(calibrated_device_text(kBase, measured, {}, std::nullopt));
  const auto device = must(read_back(text));
  EXPECT_EQ(device.spec.context_switch, Duration{100'000});
  EXPECT_FALSE(device.spec.context_switch_empty);
}

TEST(CalibratedFile, AFakeGpusConstantsSayThatTheyAre) {
  const CalibrationOrigin origin{"2026-11-22", "a device", "", true};
  const auto text =
      calibrated_device_text(kBase, calibration(), origin, std::vector<std::string>{"a name"});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("bubblesim calibrate --fake, 2026-11-22, a device, n=120"),
            std::string::npos);
  const auto device = must(read_back(*text));
  EXPECT_EQ(device.recorded_names, std::vector<std::string>{"a name"});
  EXPECT_EQ(device.spec.name, "a device");
}

TEST(CalibratedFile, ResidualsAreARowACell) {
  Calibration calibration;
  calibration.cells.push_back({{program::KernelClass::kMemory, 66},
                       {{program::KernelClass::kCompute, 132}},
                       {10, 1.2, 1.25, 1.3},
                       true});
  calibration.contention.emplace().predicted = {1.0};
  const std::string text = residuals_csv(calibration);
  EXPECT_NE(text.find("memory,66,compute,132,,,10,1.25000,1.20000,1.30000,1.00000,-0.20000,1\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace bubblesim::measure

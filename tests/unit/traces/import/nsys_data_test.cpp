// Real exports of the data folder against figures that SQL gives; skipped where it is absent.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/nsys_import.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

const fs::path kData = BUBBLESIM_DATA_DIR;

struct Figures {
  std::size_t kernels = 0;
  std::size_t copies = 0;
  std::size_t memsets = 0;
  std::size_t with_launch = 0;
  std::int64_t busy_ns = 0;  ///< sum of durations of kernels
};

Figures figures_of(const RankTrace& trace) {
  Figures out;
  for (const DeviceOp& op : trace.device_ops) {
    out.kernels += op.kind == DeviceOpKind::kKernel ? 1 : 0;
    out.copies += op.kind == DeviceOpKind::kCopy ? 1 : 0;
    out.memsets += op.kind == DeviceOpKind::kMemset ? 1 : 0;
    out.with_launch += op.launch != kNone ? 1 : 0;
    if (op.kind == DeviceOpKind::kKernel) out.busy_ns += to_ns(op.duration);
  }
  return out;
}

RankTrace read(const fs::path& path) {
  auto job = import_nsys_file(path);
  if (!job) {
    ADD_FAILURE() << job.error().text();
    return {};
  }
  EXPECT_EQ(job->ranks.size(), 1U);
  EXPECT_EQ(broken_promise(job->ranks[0]), "");
  return std::move(job->ranks[0]);
}

class NsysData : public testing::Test {
 protected:
  static fs::path file(const std::string& path) { return kData / path; }
};

// Schema 3.16: one process of NVIDIA/Fuser on an H200; NVTX ranges, driver calls.
TEST_F(NsysData, a_run_on_an_h200_agrees_with_sql) {
  const fs::path path = file("NVIDIA+Fuser/report2.e7fc719.sqlite.gz");
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path;
  const RankTrace trace = read(path);
  const Figures got = figures_of(trace);
  EXPECT_EQ(got.kernels, 19U);
  EXPECT_EQ(got.copies, 1U);
  EXPECT_EQ(got.memsets, 1U);
  EXPECT_EQ(got.with_launch, 21U);
  EXPECT_EQ(got.busy_ns, 390428);
  EXPECT_EQ(trace.host_calls.size(), 968U);
  EXPECT_EQ(trace.markers.size(), 652U);
  EXPECT_EQ(trace.device.name, "NVIDIA H200");
  EXPECT_EQ(trace.device.sm_count, 132U);
  EXPECT_EQ(trace.provenance.tool, "Nsight Systems 2024.6.2.25, schema 3.16.1");
  EXPECT_EQ(trace.provenance.note, "process 30571 (./bin/test_matmul), GPU 0");
  EXPECT_EQ(to_ns(trace.device_ops[0].start), 1733878431540588992 + 784431748);
}

// Schema 3.13: CloverLeaf on an A100; every kernel is followed by a cudaDeviceSynchronize.
TEST_F(NsysData, cloverleaf_agrees_with_sql) {
  const fs::path path = file(
      "hpcgroup+pipit/pipit/tests/data/cloverleaf-nsys/perlmutter-cloverleaf-cuda.sqlite.gz");
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path;
  const RankTrace trace = read(path);
  const Figures got = figures_of(trace);
  EXPECT_EQ(got.kernels, 1312U);
  EXPECT_EQ(got.copies, 279U);
  EXPECT_EQ(got.with_launch, 1591U);
  EXPECT_EQ(got.busy_ns, 294404540);
  EXPECT_EQ(trace.host_calls.size(), 3048U);
  EXPECT_EQ(trace.device.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(trace.rank, 0U);
  EXPECT_EQ(trace.counters.count("nsys_ranks_from_environment"), 1U);
  std::map<HostCallKind, std::size_t> calls;
  for (const HostCall& call : trace.host_calls) ++calls[call.kind];
  EXPECT_EQ(calls[HostCallKind::kDeviceSync], 1312U);
  EXPECT_EQ(calls[HostCallKind::kLaunchKernel], 1312U);
  EXPECT_EQ(calls[HostCallKind::kCopy], 279U);
}

}  // namespace
}  // namespace bubblesim::traces

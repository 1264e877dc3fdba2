// All probes but the contention grid (contention_fit.hpp): their runs, and the findings of their
// records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/hardware/gpu_spec.hpp"
#include "sim/measure/calibrate/probe.hpp"
#include "sim/program/kinds.hpp"

namespace bubblesim::measure {

// Latencies of launches, queues, waits and notices, by one process that has the GPU to itself.

/// A pass: a kernel after a pause, so that the GPU is idle; another as soon as the host returns
/// from waiting for the first; then a long kernel with a row of others behind it, launched while it
/// ran.
[[nodiscard]] RigSetup latency_run(const hardware::GpuSpec& spec);

/// launch_latency: from the return of a call whose stream was idle to the kernel's start.
/// stream_gap: from the end of a kernel in the row to the start of the next one, if that was
/// launched before its predecessor started, so that the host adds nothing. sync_latency: from a
/// kernel's end to the next launch call, with a wait between them: the wait's return, and the few
/// instructions up to the call. completion_notice: from a lone kernel's end to the process's
/// knowledge of it, while the process polls all the time. launch_latency is 0 if kernels start
/// before their calls return.
[[nodiscard]] std::vector<Finding> latency_findings(const Records& records);

// Bandwidths, by copies of two sizes: the longer copy's extra time is due to its extra bytes.

/// A pass: a short and a long copy on each path (to the device, to the host, within the device).
[[nodiscard]] RigSetup copy_run(const hardware::GpuSpec& spec);

/// host_bandwidth: over both directions, pinned memory, one copy at a time. dram_reach: DRAM
/// bandwidth of a copy within the device, over the peak in `base`. A byte counts twice: it is read
/// and written.
[[nodiscard]] std::vector<Finding> copy_findings(const Records& records,
                                                 const hardware::GpuSpec& base);

// Time slices of contexts that share the GPU without MPS, by two processes that never let it idle.

/// Each process has an endless row of kernels of about 100 us, far shorter than a slice.
[[nodiscard]] RigSetup slice_run(const hardware::GpuSpec& spec);

/// time_slice: the slope of the process's own time (absences left out) over the number of its
/// absences, so that it does not matter where in the slice a kernel ends. context_switch: half of
/// (absence - the other process's slice), since the GPU passes to the other process and back.
[[nodiscard]] std::vector<Finding> slice_findings(const Records& records);

// The delay between kernels of different processes under MPS.

/// Two clients of an MPS server, each with a small kernel now and then, which always has room, so
/// that only its way through the front end delays it. The second client comes later: until then the
/// first is alone.
[[nodiscard]] RigSetup client_run(const hardware::GpuSpec& spec);

/// client_switch: launch latency (return of the call to the kernel's start) of launches that follow
/// one of the other client, less the client's median latency after a launch of its own.
[[nodiscard]] std::vector<Finding> client_findings(const Records& records);

// Whose blocks are placed first, of two clients of an MPS server.

/// Two clients, each with kernels of 40 waves, at different intervals: now and then a kernel
/// arrives while the other client's runs.
[[nodiscard]] RigSetup order_run(const hardware::GpuSpec& spec);

/// client_order: whether the arriving kernel's first block waits for most of the rest of the other
/// kernel (1: blocks in order of arrival) or not (0: equal shares).
[[nodiscard]] std::vector<Finding> order_findings(const Records& records);

// The speed of kernels on a part of the SMs.

/// Clients of an MPS server with different percentages, one after the other: a memory-bound and a
/// compute-bound kernel of many waves each.
[[nodiscard]] RigSetup part_run(const hardware::GpuSpec& spec);

/// The time of a kernel of many equal blocks, one at a time on an SM, on some of the SMs.
struct PartTime {
  program::KernelClass kernel_class{};
  std::uint32_t sms = 0;
  double waves = 1;     ///< over the waves of the same kernel on all SMs
  double relative = 0;  ///< duration over that of the same kernel on all SMs
};
[[nodiscard]] std::vector<PartTime> part_times(const Records& records,
                                               const hardware::GpuSpec& spec);

/// part/dram_saturating_sms and part/dark_clock_gain: least squares by the GPU model's own formula.
/// The DRAM-bound share of a kernel's time comes from `base`, so `contention` is calibrated first.
/// The spread is the value plus and minus the root mean square error of the relative times.
[[nodiscard]] std::vector<Finding> part_findings(const std::vector<PartTime>& parts,
                                                 const hardware::GpuSpec& base);

// The SMs that MPS percentages really give, and the steps between them.

/// Clients of an MPS server with different percentages, one after the other: a kernel of many equal
/// blocks, one on an SM at a time, lasts as many waves as its SMs need. With as many waves as SMs,
/// one SM more or less changes the length measurably.
[[nodiscard]] RigSetup sm_run(const hardware::GpuSpec& spec);

struct SmShare {
  std::uint32_t percentage = 0;
  double length_ns = 0;    ///< median
  double relative = 0;     ///< over that on all SMs; 0: not measured
  std::size_t count = 0;   ///< executions while nothing else ran
  std::uint32_t sms = 0;   ///< by the step found; 0: none found
};
[[nodiscard]] std::vector<SmShare> sm_shares(const RigSetup& run, const Records& records);

/// tpc_sms: the step of schedule::sm_cap whose SM counts explain these times best; the smallest of
/// equals. The clock and the reach of DRAM are fitted with it. Nothing is found if the
/// best step misses by more than 2 % (root mean square). Sets SmShare::sms.
[[nodiscard]] Finding tpc_finding(std::vector<SmShare>& shares, const hardware::GpuSpec& spec);

}  // namespace bubblesim::measure

// Counters of a CUDA device: differences of stand-ins from the traced operations.
#pragma once

#include "sim/base/counters.hpp"

namespace bubblesim::capture::cuda {

inline constexpr CounterSpec kClamped{"stand_ins_clamped", Severity::kNotice,
    "Kernels whose grid, block or shared memory this GPU does not have; cut to what it has."};
inline constexpr CounterSpec kResidencyDiffers{"stand_ins_residency_differs", Severity::kNotice,
    "Kernels of which an SM holds another number of blocks than of their stand-in."};
inline constexpr CounterSpec kAtFloor{"stand_ins_at_floor", Severity::kNotice,
    "Kernels shorter than a stand-in that does nothing; they last as long as that."};
inline constexpr CounterSpec kFloorExcess{"stand_ins_floor_excess_ns", Severity::kNotice,
    "By so much all operations of a pass together last longer than the plan says, since a stand-in "
    "that does nothing is longer than their kernels."};
inline constexpr CounterSpec kHurried{"stand_ins_measured_in_a_hurry", Severity::kNotice,
    "Stand-ins measured after the time for measuring was over: one round each."};
inline constexpr CounterSpec kLockNotHeld{"cuda_measured_without_lock", Severity::kNotice,
    "Times that stand-ins were measured while another process may have measured its own."};
inline constexpr CounterSpec kTrafficOff{"stand_ins_traffic_off", Severity::kNotice,
    "Stand-ins whose DRAM traffic is more than 10 % from what the form asks for."};
inline constexpr CounterSpec kWithoutForm{"stand_ins_without_form", Severity::kNotice,
    "Kernels without a shape: a block of 32 threads stands for them, 16 of 512 for collectives."};
inline constexpr CounterSpec kBandwidthUnknown{"cuda_dram_bandwidth_unknown", Severity::kNotice,
    "The driver does not say what DRAM can do: stand-ins cause no DRAM traffic."};
inline constexpr CounterSpec kCacheNotSaved{
    "stand_in_cache_not_saved", Severity::kInfo, "The file of fits could not be written."};
inline constexpr CounterSpec kTick{"cuda_globaltimer_tick_ns", Severity::kInfo,
    "Smallest step of the device's clock: no time of an operation is finer."};
inline constexpr CounterSpec kOffsetSpan{"cuda_clock_offset_span_ns", Severity::kInfo,
    "Device times on the host's clock are uncertain by half of so much."};
inline constexpr CounterSpec kDrift{"cuda_clock_drift_ns", Severity::kInfo,
    "By so much the device's clock moved against the host's during the run."};
inline constexpr CounterSpec kDriftLeft{"cuda_clock_drift_left_ns", Severity::kInfo,
    "By so much device times were off at the end of the run, with the drift taken out."};
inline constexpr CounterSpec kDriftLarge{"cuda_clock_drift_large", Severity::kNotice,
    "Runs at whose end device times were off by more than 20 us, with the drift taken out."};
inline constexpr CounterSpec kSlotWaits{"cuda_launches_waited_for_records", Severity::kNotice,
    "Launch calls that waited: 16 executions of one operation had not ended."};
inline constexpr CounterSpec kEdgeWaits{"cuda_launches_waited_for_edges", Severity::kNotice,
    "Launch calls that waited until another thread had launched what theirs comes after."};
inline constexpr CounterSpec kEdgesGivenUp{"cuda_edges_given_up", Severity::kLoss,
    "Edges left out: what comes before had not been launched after the limit."};
inline constexpr CounterSpec kEdgesBackwards{"cuda_graph_edges_backwards", Severity::kLoss,
    "Edges of a graph from a later operation to an earlier one; left out."};
inline constexpr CounterSpec kGraphCopiesUnscaled{"cuda_graph_copies_unscaled", Severity::kNotice,
    "Copies in graphs launched with a factor: a graph's copies keep their bytes."};
inline constexpr CounterSpec kDeviceFault{"cuda_device_fault", Severity::kError,
    "The device failed or hung: operations after that did not run, and nothing was waited for."};

}  // namespace bubblesim::capture::cuda

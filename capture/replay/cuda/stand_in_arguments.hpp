// Arguments and results of stand-in kernels: the one header that host code and stand_in_kernels.cu
// share. Plain data of fixed layout; all addresses are the device's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblesim::capture::cuda {

/// One execution of an operation, in pinned host memory that the device writes. `n` counts the
/// operation's executions from 1. One store writes a time and its execution number together (16
/// aligned bytes): a fence between two stores would wait for the host's memory, about a microsecond
/// of each kernel. The two pairs are written in no fixed order.
struct alignas(16) RecordSlot {
  std::uint64_t start_ns;  ///< globaltimer, of the first block
  std::uint64_t started;   ///< n: start_ns is that of execution n
  std::uint64_t end_ns;    ///< globaltimer, of the last block to finish
  std::uint64_t ended;     ///< n: end_ns is that of execution n
};
static_assert(sizeof(RecordSlot) == 32 && offsetof(RecordSlot, end_ns) == 16);

/// The state of one operation, in device memory. Executions of one operation never overlap: they
/// are in one stream, or in one graph, whose launches run one after the other.
struct OperationState {
  /// The upper 32 bits count ended executions, the rest ended blocks of the present one: one
  /// addition counts a block and gives the last block the execution's number. Read it past the L1
  /// cache, which may hold an older execution's value.
  std::uint64_t progress;
  std::uint64_t start_ns;  ///< of a collective's present execution; 0: no block has started
};

/// Arguments of every stand-in. Each block runs base + slope * scale loops; units of the last loop
/// make up the fraction on average over the blocks. Collectives read the sum as nanoseconds since
/// the first block's start.
struct StandInArguments {
  std::uint64_t state;   ///< OperationState
  std::uint64_t slots;   ///< RecordSlot[slot_count], of this operation
  std::uint64_t scale;   ///< float that the host sets before a graph's launch; 0: 1
  std::uint64_t buffer;  ///< streamed by memory steps
  std::uint64_t buffer_lines;  ///< its size in 16 bytes, a power of two
  /// Execution n (from 0) streams from line first + n * advance on, modulo the buffer: it continues
  /// where the last execution ended, since earlier lines may be in the L2 cache.
  std::uint64_t first_line;
  std::uint64_t advance;
  float base;
  float slope;
  std::uint32_t slot_count;    ///< a power of two
  std::uint32_t memory_rate;   ///< memory steps in kRateUnit loops
  std::uint32_t sparse;        ///< units a loop
  std::uint32_t dense;
  std::uint32_t wide;
  std::uint32_t tensor;
  std::uint32_t units;         ///< of a loop, all kinds together
  std::uint32_t unit_rate;     ///< memory_rate of one unit
  std::uint32_t refresh;       ///< loops between uses of registers held for size alone; 0: never
  /// Number of first blocks that do not count their ends: all but the last blocks, as many as the
  /// GPU holds. Blocks start in the order of block_rank() and last equally long.
  std::uint32_t uncounted;
};
static_assert(sizeof(StandInArguments) == 7 * 8 + 12 * 4);

/// Arguments of ping_device, which compares the host's clock with the device's.
struct PingArguments {
  std::uint64_t slot;  ///< RecordSlot: start_ns is the time, end_ns the next value that differs
  std::uint64_t number;
};

/// Arguments of begin_copy and end_copy, kernels of one thread around a copy or memset.
struct StampArguments {
  std::uint64_t state;
  std::uint64_t slots;
  std::uint32_t slot_count;
  std::uint32_t pad;
};

// A memory step of a thread reads this many lines of 16 bytes and overwrites the last one.
inline constexpr std::uint32_t kLinesPerStep = 4;
inline constexpr std::uint32_t kBytesPerStep = 16 * (kLinesPerStep + 1);
inline constexpr std::uint32_t kRateUnit = 1U << 20;
// Units, in cycles that one warp needs alone (sm_90: FMA 4, shuffle about 24).
inline constexpr std::uint32_t kChain = 6;          ///< dependent FMAs of a dense unit
inline constexpr std::uint32_t kWideChains = 4;     ///< chains side by side of a wide unit
inline constexpr std::uint32_t kUnitCycles = 24;    ///< of any unit but tensor

}  // namespace bubblesim::capture::cuda

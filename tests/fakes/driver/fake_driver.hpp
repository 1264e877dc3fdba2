// The test's interface to the fake CUDA driver: settings and readings. All functions are
// thread-safe.
//
// The test sets the time: advance_to() runs the work that is due by then. A stand-in lasts
// kFloorNs + loops * (kLoopNs + kMemoryStepNs * memory steps a loop); a collective its nanoseconds;
// a copy a nanosecond a kilobyte. The fake models streams and events but no SMs: concurrent kernels
// do not slow each other down.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/replay/cuda/driver_abi.hpp"

#define FAKE_DRIVER_API __attribute__((visibility("default")))

namespace fake_driver {

namespace abi = bubblesim::capture::cuda;

inline constexpr std::int64_t kFloorNs = 2'000;
inline constexpr std::int64_t kLoopNs = 40;
inline constexpr std::int64_t kMemoryStepNs = 20;
inline constexpr std::int64_t kGapNs = 2'000;     ///< from a stand-in's end to dependent work
inline constexpr std::int64_t kLaunchNs = 3'000;      ///< from a call to an idle stream's start
inline constexpr std::int64_t kBytesPerNs = 1'000;    ///< copies and memsets
inline constexpr std::uint64_t kMemory = 80ULL << 30;
inline constexpr std::uint32_t kSms = 132;

/// Restores the state before the first call: all streams, events and memory are gone.
FAKE_DRIVER_API void reset();

/// Moves time on, in host nanoseconds; starts and ends up to then are written.
FAKE_DRIVER_API void advance_to(std::int64_t host_ns);
/// globaltimer = host time + this.
FAKE_DRIVER_API void set_clock_offset(std::int64_t ns);

/// The call of this name fails once, after `after` calls that succeed.
FAKE_DRIVER_API void fail_call(const std::string& name, abi::Status status, int after = 0);
/// From now on the device is broken: running work does not end, and queries return `status`.
FAKE_DRIVER_API void break_device(abi::Status status);
/// From now on no work ends, and no call reports an error.
FAKE_DRIVER_API void hang_device();
/// From now on work that ends writes no record of its end.
FAKE_DRIVER_API void lose_records();
/// Durations of stand-ins are rounded up to a multiple of this.
FAKE_DRIVER_API void set_quantum(std::int64_t ns);
FAKE_DRIVER_API void set_green_contexts_broken(bool broken);

/// An operation that ran or will run; in the order in which they were put on streams.
struct Execution {
  std::string name;         ///< of the kernel; "copy", "memset"
  std::uint32_t stream = 0;   ///< numbered from 1 as they were made
  std::array<unsigned, 3> grid{};
  std::int64_t start_ns = 0;  ///< host time
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_line = 0;  ///< StandInArguments
  std::uint64_t advance = 0;
};
FAKE_DRIVER_API std::vector<Execution> executions();

struct Stream {
  int priority = 0;
  std::uint32_t first_sm = 0;  ///< of its green context
  std::uint32_t sms = 0;       ///< 0: no green context
  bool alive = true;
};
FAKE_DRIVER_API std::vector<Stream> streams();

FAKE_DRIVER_API std::uint64_t calls(const std::string& name);
FAKE_DRIVER_API std::uint64_t device_bytes_held();
/// Number of streams, events, allocations, graphs, contexts and libraries not yet released.
FAKE_DRIVER_API std::uint64_t things_held();

}  // namespace fake_driver

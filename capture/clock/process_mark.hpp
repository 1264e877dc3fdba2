// Identifies a process even after its end, since Linux reuses process numbers.
#pragma once

#include <cstdint>

namespace bubblesim::capture {

/// Plain: lives in shared memory.
struct ProcessMark {
  std::int32_t pid = 0;
  std::uint64_t start = 0;  ///< in clock ticks since the machine's start (proc_pid_stat(5))
  std::uint64_t space = 0;  ///< its pid namespace; 0: not known
  friend bool operator==(const ProcessMark&, const ProcessMark&) = default;
};

[[nodiscard]] ProcessMark this_process() noexcept;

/// True only if the process has certainly ended or is a zombie; false for a process of another pid
/// namespace, which cannot be seen from here. Some 10 us; no allocation.
[[nodiscard]] bool has_ended(const ProcessMark& process) noexcept;

}  // namespace bubblesim::capture

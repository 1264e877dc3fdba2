// What the gate counts in a job's processes, in a file that the tool maps too: it outlives
// processes that are killed. The environment variables by which the tool speaks to them are named
// here too.
#pragma once

#include <atomic>
#include <cstdint>

namespace bubblesim::capture {

inline constexpr const char* kEnvGate = "BUBBLESIM_GATE";               ///< name of the gate
inline constexpr const char* kEnvGateClient = "BUBBLESIM_GATE_CLIENT";  ///< 0: training
/// Folder of the counts; may be missing.
inline constexpr const char* kEnvGateFolder = "BUBBLESIM_GATE_FOLDER";
/// "1": completions are told to the policy.
inline constexpr const char* kEnvGateCompletions = "BUBBLESIM_GATE_COMPLETIONS";

/// Files of the folder: client<id> holds LiveCounts; notes holds a line a process, as it happens.
inline constexpr const char* kNotesFile = "notes";

/// All only grow, but `process`.
struct LiveCounts {
  std::atomic<std::int32_t> process{0};     ///< that has, or had last, the client's place
  std::atomic<std::uint32_t> processes{0};  ///< that have had it, one after the other
  std::atomic<std::uint32_t> ungated_processes{0};  ///< that launched and found it taken
  std::atomic<std::uint32_t> processes_elsewhere{0};  ///< that launched on other GPUs
  std::atomic<std::uint64_t> kernels{0};     ///< launches of kernels and graphs
  std::atomic<std::uint64_t> collectives{0};
  std::atomic<std::uint64_t> copies{0};      ///< and memsets
  std::atomic<std::uint64_t> blocks{0};
  std::atomic<std::uint64_t> undecided{0};   ///< launches while nobody decided
  std::atomic<std::uint64_t> held{0};
  /// All of the hook but the driver's own launch and waits for the window: of held launches, and of
  /// those that were not, which is what the gate costs.
  std::atomic<std::uint64_t> held_ns{0};
  std::atomic<std::uint64_t> passing_ns{0};
  std::atomic<std::uint64_t> window_waits{0};
  std::atomic<std::uint64_t> window_ns{0};
  std::atomic<std::uint64_t> window_passed{0};  ///< launches that waited long enough
  std::atomic<std::uint64_t> completions{0};
  std::atomic<std::uint64_t> completions_guessed{0};  ///< the driver gave no event: told at once
  std::atomic<std::uint64_t> iterations{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace bubblesim::capture

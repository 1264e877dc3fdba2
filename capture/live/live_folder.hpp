// The folder with the counts of two jobs' processes: made for one run, removed after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/output_file.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

// The gate's counts in a job's processes, in a file that the tool maps, too: it outlives processes
// that are killed. The environment variables by which the tool speaks to them are named here, too.

/// Names of gates, a line each: those of the GPUs that the process may come to use.
inline constexpr const char* kEnvGate = "BUBBLESIM_GATE";
inline constexpr const char* kEnvGateClient = "BUBBLESIM_GATE_CLIENT";  ///< 0: training
/// Folders of the gates' counts, a line each; may be missing.
inline constexpr const char* kEnvGateFolder = "BUBBLESIM_GATE_FOLDER";
/// "1": completions are reported to the policy.
inline constexpr const char* kEnvGateCompletions = "BUBBLESIM_GATE_COMPLETIONS";

/// Files of the folder: client<id> holds LiveCounts; notes holds a line a process, as it happens.
inline constexpr const char* kNotesFile = "notes";

/// Every number only grows, by count().
struct LiveCounts {
  std::uint32_t processes = 0;  ///< that had the client's place, one after the other
  std::uint32_t ungated_processes = 0;  ///< that launched and found the place taken
  std::uint32_t processes_elsewhere = 0;  ///< that launched on other GPUs
  std::uint64_t kernels = 0;     ///< launches of kernels and graphs
  std::uint64_t collectives = 0;
  std::uint64_t copies = 0;      ///< and memsets
  std::uint64_t blocks = 0;
  std::uint64_t undecided = 0;   ///< launches without a decision
  std::uint64_t held = 0;
  /// Time in the hook without the driver's own launch and waits for the window: for held launches,
  /// and for all others (the cost of the gate).
  std::uint64_t held_ns = 0;
  std::uint64_t passing_ns = 0;
  std::uint64_t window_waits = 0;
  std::uint64_t window_ns = 0;
  std::uint64_t window_passed = 0;  ///< launches that gave up waiting for room
  std::uint64_t completions = 0;
  std::uint64_t completions_guessed = 0;  ///< the driver gave no event: told at once
  std::uint64_t iterations = 0;
};

/// Other processes may count, or read, at the same time.
template <class Count>
void count(Count& counted, std::uint64_t more = 1) {
  std::atomic_ref(counted).fetch_add(static_cast<Count>(more), std::memory_order_relaxed);
}

class LiveFolder {
 public:
  /// Makes the folder in `parent`, which exists.
  [[nodiscard]] static Result<std::unique_ptr<LiveFolder>> make(const std::string& parent,
                                                                std::uint32_t clients);
  ~LiveFolder();
  LiveFolder(const LiveFolder&) = delete;
  LiveFolder& operator=(const LiveFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return folder_->path(); }
  [[nodiscard]] const LiveCounts& counts(std::uint32_t client) const { return *counts_[client]; }
  /// The processes' notes so far, a line each.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  explicit LiveFolder(std::unique_ptr<ScratchFolder> folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<void> add_counts(std::uint32_t client);

  std::unique_ptr<ScratchFolder> folder_;
  std::vector<LiveCounts*> counts_;  ///< mapped
};

}  // namespace bubblesim::capture

// The folder in which the processes of two jobs leave what they count: made for one run, removed
// after it.
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

// What the gate counts in a job's processes, in a file that the tool maps too: it outlives
// processes that are killed. The environment variables by which the tool speaks to them are named
// here too.

inline constexpr const char* kEnvGate = "BUBBLESIM_GATE";               ///< name of the gate
inline constexpr const char* kEnvGateClient = "BUBBLESIM_GATE_CLIENT";  ///< 0: training
/// Folder of the counts; may be missing.
inline constexpr const char* kEnvGateFolder = "BUBBLESIM_GATE_FOLDER";
/// "1": completions are told to the policy.
inline constexpr const char* kEnvGateCompletions = "BUBBLESIM_GATE_COMPLETIONS";

/// Files of the folder: client<id> holds LiveCounts; notes holds a line a process, as it happens.
inline constexpr const char* kNotesFile = "notes";

/// All only grow, but `process`.
template <template <class> class Cell>
struct LiveCountsOf {
  Cell<std::int32_t> process{};     ///< that has, or had last, the client's place
  Cell<std::uint32_t> processes{};  ///< that have had it, one after the other
  Cell<std::uint32_t> ungated_processes{};  ///< that launched and found it taken
  Cell<std::uint32_t> processes_elsewhere{};  ///< that launched on other GPUs
  Cell<std::uint64_t> kernels{};     ///< launches of kernels and graphs
  Cell<std::uint64_t> collectives{};
  Cell<std::uint64_t> copies{};      ///< and memsets
  Cell<std::uint64_t> blocks{};
  Cell<std::uint64_t> undecided{};   ///< launches while nobody decided
  Cell<std::uint64_t> held{};
  /// All of the hook but the driver's own launch and waits for the window: of held launches, and of
  /// those that were not, which is what the gate costs.
  Cell<std::uint64_t> held_ns{};
  Cell<std::uint64_t> passing_ns{};
  Cell<std::uint64_t> window_waits{};
  Cell<std::uint64_t> window_ns{};
  Cell<std::uint64_t> window_passed{};  ///< launches that waited long enough
  Cell<std::uint64_t> completions{};
  Cell<std::uint64_t> completions_guessed{};  ///< the driver gave no event: told at once
  Cell<std::uint64_t> iterations{};
};

template <class T>
using PlainCell = T;
using LiveCounts = LiveCountsOf<std::atomic>;
using LiveTotals = LiveCountsOf<PlainCell>;  ///< what they are at some moment
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              sizeof(LiveCounts) == sizeof(LiveTotals));

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
  /// What the processes noted so far, a line each.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  explicit LiveFolder(std::unique_ptr<ScratchFolder> folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<void> add_counts(std::uint32_t client);

  std::unique_ptr<ScratchFolder> folder_;
  std::vector<LiveCounts*> counts_;  ///< mapped
};

}  // namespace bubblesim::capture

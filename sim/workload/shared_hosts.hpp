// Host threads shared by ranks of one process. A rank's trace has only the calls for its own GPU,
// but a call follows the thread's previous one even if that was for another rank's GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/workload/job_program.hpp"
#include "traces/iterations/job_pass.hpp"
#include "traces/trace.hpp"

namespace bubblesim::workload {

/// A call of another rank.
struct PeerCall {
  std::uint32_t rank = 0;  ///< into JobTrace::ranks
  std::uint32_t call = 0;  ///< into its host_calls
  TraceTime start{};
  TraceTime end{};
  std::uint32_t passes_back = 0;
};

/// The step of a rank's program made from a call that launches or waits.
struct CallPlace {
  std::uint32_t call = 0;  ///< into host_calls
  std::uint32_t thread = 0;
  std::uint32_t step = 0;
};

class SharedHosts {
 public:
  /// `passes`: the pass of each rank; empty for whole recordings.
  SharedHosts(const traces::JobTrace& job, const std::vector<traces::RankPass>& passes);

  /// The start of the first call of the rank's process.
  [[nodiscard]] std::optional<TraceTime> begin(std::uint32_t rank) const;
  /// The last call that the rank's thread makes for another rank between `after`, exclusive, and
  /// `until`.
  [[nodiscard]] std::optional<PeerCall> last_before(std::uint32_t rank, std::uint32_t thread,
                                                    TraceTime after, TraceTime until) const;
  /// The thread's last call of the pass, if it is for another rank: the thread's first call of the
  /// next pass follows it.
  [[nodiscard]] std::optional<PeerCall> last_of_pass(std::uint32_t rank,
                                                     std::uint32_t thread) const;

 private:
  [[nodiscard]] const std::vector<PeerCall>& calls_of(std::uint32_t rank,
                                                      std::uint32_t thread) const;

  using Thread = std::pair<std::uint32_t, std::uint64_t>;  ///< process, system_id

  const traces::JobTrace& job_;
  std::map<Thread, std::vector<PeerCall>> calls_;  ///< calls that launch or wait, by start
};

/// The host threads that a rank shares with others.
struct HostShare {
  const SharedHosts* hosts = nullptr;  ///< null: none are shared
  std::uint32_t rank = 0;              ///< into JobTrace::ranks
};

/// Replaces the calls in StepDetail::after_rank and after_step by their steps. `places`: by rank,
/// the places of its calls in order of calls.
void resolve_peers(const traces::JobTrace& job, const std::vector<std::vector<CallPlace>>& places,
                   JobProgram& program);

}  // namespace bubblesim::workload

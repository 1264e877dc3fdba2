// The host threads that ranks of one process share: a rank has the calls for its own GPU alone, and
// each comes after the thread's call before it, whichever GPU that was for.
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

/// Where a call that launches or waits is in its rank's program.
struct CallPlace {
  std::uint32_t call = 0;  ///< into host_calls
  std::uint32_t thread = 0;
  std::uint32_t step = 0;
};

class SharedHosts {
 public:
  /// `passes`: of the ranks; empty for whole recordings.
  SharedHosts(const traces::JobTrace& job, const std::vector<traces::RankPass>& passes);

  /// The first call of the rank's process.
  [[nodiscard]] std::optional<TraceTime> begin(std::uint32_t rank) const;
  /// The last call that the thread of the rank made for another one, of those that begin after
  /// `after` and return by `until`.
  [[nodiscard]] std::optional<PeerCall> last_before(std::uint32_t rank, std::uint32_t thread,
                                                    TraceTime after, TraceTime until) const;
  /// The thread's last call of the pass, if it is for another rank: what its first one follows as
  /// passes repeat.
  [[nodiscard]] std::optional<PeerCall> last_of_pass(std::uint32_t rank,
                                                     std::uint32_t thread) const;

 private:
  [[nodiscard]] const std::vector<PeerCall>& calls_of(std::uint32_t rank,
                                                      std::uint32_t thread) const;

  using Thread = std::pair<std::uint32_t, std::uint64_t>;  ///< process, system_id

  const traces::JobTrace& job_;
  std::map<Thread, std::vector<PeerCall>> calls_;  ///< that launch or wait, by start
};

/// What a rank shares with others.
struct HostShare {
  const SharedHosts* hosts = nullptr;  ///< null: nothing
  std::uint32_t rank = 0;              ///< its place
};

/// Turns the calls that steps come after (StepDetail::after_rank) into steps of their ranks.
/// `places`: by rank, those of each in order of calls.
void resolve_peers(const traces::JobTrace& job, const std::vector<std::vector<CallPlace>>& places,
                   JobProgram& program);

}  // namespace bubblesim::workload

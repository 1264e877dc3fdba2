// The token server of Dilu, after RCKM.c (github.com/sigserverless/Dilu at 1134655a). Each process
// reports every period the blocks that its grants have not covered yet; the server answers with the
// blocks that the process may launch in the next period. SLO-sensitive processes (inference) are
// watched. The others (training) get fewer blocks when a sensitive process's bursts of launches get
// longer, and more when the bursts recover. One server serves one GPU; RCKM.c has one conservative
// quota for all GPUs of a node. Kept as in RCKM.c: a service that was idle for at most 10 periods
// does not veto scaling up, and services after a vetoing one are skipped; a service counts itself
// as a busy peer; only the last report of a throttled process decides whether blocks are left over;
// a language model's floor counts as a tenth of its setting; without a reference every fifth burst
// counts as a recovery; fractions of blocks are cut off.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/burst_history.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct RckmConstants {
  double upper_blocks;        ///< tokens of a whole GPU a period
  double initial_blocks;      ///< the conservative quota at the start
  double floor_share;         ///< of upper_blocks times the requests of throttled processes
  std::int64_t conservative;  ///< idle periods up to which the conservative quota applies
  std::int64_t busy_peer;     ///< idle periods up to which a sensitive process counts as busy
  std::int64_t all_idle;      ///< idle periods of all sensitive processes until limits apply
  BurstRule burst;
  double recover_factor;
  double llm_cut;  ///< a language model's burst of at least this inflation cuts the quota
};

/// A process that connects.
struct RckmTask {
  enum class Kind : std::uint8_t { kThrottled, kSensitive, kLanguageModel };
  Kind kind = Kind::kThrottled;
  double request = 1;  ///< SM shares
  double limit = 1;
};

class DiluRckm {
 public:
  explicit DiluRckm(const RckmConstants& constants)
      : constants_(constants), quota_(constants.initial_blocks), pool_(constants.upper_blocks) {}

  /// Adds a task and returns its number, ascending from 0.
  std::size_t connect(const RckmTask& task);
  void disconnect(std::size_t task);
  /// A period of the process ended with `blocks` not yet covered. Returns its next grant.
  std::int64_t report(std::size_t task, std::int64_t blocks);
  /// The task's grant before its first period has ended.
  std::int64_t grant(std::size_t task);

  /// The conservative quota: blocks a period for all throttled processes; each may use its
  /// requested share.
  [[nodiscard]] double quota() const { return quota_; }

 private:
  struct Task {
    RckmTask is;
    bool connected = true;
    std::int64_t zeros = 0;  ///< idle periods since the last burst began or ended
    std::int64_t burst = 0;  ///< periods of the present burst
    BurstHistory history;
  };

  void watch(Task& task, std::int64_t blocks);
  void end_burst(Task& task);
  std::int64_t grant_sensitive(const Task& task);
  void sum_shares();

  RckmConstants constants_;
  double quota_;
  double pool_;             ///< blocks a period that throttled processes share
  bool uncleared_ = false;  ///< the last report of a throttled process had more than 0 blocks
  double high_requests_ = 0;
  double low_requests_ = 0;
  double low_limits_ = 0;
  std::vector<Task> tasks_;
};

[[nodiscard]] RckmConstants rckm_constants(const policy::ParameterSet& given);
[[nodiscard]] std::vector<policy::ParameterSpec> rckm_parameters();

}  // namespace bubblesim::policies

// The token server of Dilu, as RCKM.c has it (github.com/sigserverless/Dilu at 1134655a): from the
// blocks that each process reports every period to the blocks that it may launch in the next one.
// SLO-sensitive processes (inference) are watched; the others (training) are throttled when a
// sensitive one's bursts of launches get longer, and are given more back as they recover.
// One server for one GPU; the code has one conservative quota for all GPUs of a node.
// Kept as the code has it: a service that was idle for at most 10 periods does not veto scaling up,
// and services after one that vetoes are not looked at; a service counts itself as a busy peer;
// only the throttled process that reported last decides whether blocks are left over; a language
// model's floor is compared ten times lower than it is set; without a reference every fifth burst
// is a recovery; whole numbers are cut off.
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
  std::int64_t conservative;  ///< idle periods during which the conservative quota counts
  std::int64_t busy_peer;     ///< a process idle no longer than this counts as busy
  std::int64_t all_idle;      ///< idle periods after which the limits count
  BurstRule burst;
  double recover_factor;
  double llm_cut;  ///< inflation from which on a language model's burst cuts the quota
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
  /// The grant alone, before a first period has ended.
  std::int64_t grant(std::size_t task);

  /// The conservative quota: blocks a period for all throttled processes; each may use its
  /// requested share.
  [[nodiscard]] double quota() const { return quota_; }

 private:
  struct Task {
    RckmTask is;
    bool connected = true;
    std::int64_t zeros = 0;  ///< since the last burst began or ended
    std::int64_t burst = 0;  ///< periods of the present burst
    BurstHistory history;
  };

  void watch(Task& task, std::int64_t blocks);
  void end_burst(Task& task);
  std::int64_t grant_sensitive(const Task& task);
  void sum_shares();

  RckmConstants constants_;
  double quota_;
  double pool_;             ///< of throttled processes
  bool uncleared_ = false;  ///< the last report of a throttled process was not of 0 blocks
  double high_requests_ = 0;
  double low_requests_ = 0;
  double low_limits_ = 0;
  std::vector<Task> tasks_;
};

[[nodiscard]] RckmConstants rckm_constants(const policy::ParameterSet& given);
[[nodiscard]] std::vector<policy::ParameterSpec> rckm_parameters();

}  // namespace bubblesim::policies

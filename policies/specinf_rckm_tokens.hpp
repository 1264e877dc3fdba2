// The token scheduler of the SpecInF reconstruction: from empty and busy windows of training to
// the blocks that fillers may launch in the next window. Mirrors Dilu's RCKM.c (by SpecInF's first
// author), which watches inference and throttles training. Tokens are thread blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/burst_history.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct SpecInfRckmConstants {
  std::int64_t conservative_after;  ///< empty windows until conservative tokens
  std::int64_t aggressive_after;    ///< empty windows until all tokens
  double upper_blocks;              ///< tokens of a whole GPU a window
  double initial_share;             ///< of upper_blocks: the conservative quota at the start
  double floor_share;               ///< of upper_blocks: what a cut leaves at least
  double filler_request;            ///< a filler's share of the conservative quota
  double filler_limit;              ///< a filler's share of upper_blocks when aggressive
  bool online_while_busy;           ///< online fillers: conservative tokens in busy windows
  bool reacts_to_bursts;            ///< else to iterations
  BurstRule burst;
  double recover_factor;
  bool recent_reference;   ///< reference: among the last bursts; else of all time
  bool aggressive_resets;  ///< the aggressive phase restores the whole quota
};

[[nodiscard]] SpecInfRckmConstants specinf_rckm_constants(const policy::ParameterSet& given);
[[nodiscard]] std::vector<policy::ParameterSpec> specinf_rckm_token_parameters();

class SpecInfRckmTokens {
 public:
  enum class Window : std::uint8_t { kBusy, kEmpty };
  enum class Phase : std::uint8_t { kBusy, kConservative, kAggressive };

  explicit SpecInfRckmTokens(const SpecInfRckmConstants& constants)
      : constants_(constants),
        quota_(constants.upper_blocks * constants.initial_share),
        history_(constants.burst) {}

  /// A window of training ended. A burst's first empty window moves the conservative quota.
  void end_window(Window window);
  /// An iteration of training ended; `reference` is its length without fillers. Moves the quota
  /// instead, with `reaction: iterations`.
  void end_iteration(Duration length, Duration reference);

  [[nodiscard]] Phase phase() const;
  /// A filler's blocks in the next window, were all fillers of this kind.
  [[nodiscard]] double tokens(policy::Role role) const;
  /// The conservative quota: blocks a window, of which a filler gets filler_request.
  [[nodiscard]] double quota() const { return quota_; }

 private:
  void end_burst();
  void cut(double divisor);
  void recover();

  SpecInfRckmConstants constants_;
  double quota_;
  std::int64_t empty_ = 0;  ///< consecutive empty windows
  std::int64_t busy_ = 0;   ///< windows of the present burst
  BurstHistory history_;
};

}  // namespace bubblesim::policies

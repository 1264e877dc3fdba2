// Measures how much longer bursts of kernel launches are than undisturbed ones (inflation), and
// decides whether the quota is cut or recovers. This is the rule of Dilu's RCKM.c
// (github.com/sigserverless/Dilu at 1134655a), which the SpecInF reconstruction shares. Lengths are
// in periods.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/policy/declaration.hpp"

namespace bubblesim::policies {

struct BurstRule {
  std::int64_t shortest_burst = 6;  ///< bursts up to this length are no reference
  std::int64_t history = 20;        ///< bursts that count as recent
  double recover = 1.2;             ///< below this inflation the quota may recover
  double cut = 1.6;                 ///< from this inflation on the quota is cut
  double ignore = 4.0;              ///< from this inflation on the burst is of a different kind
  std::int64_t recover_bursts = 5;  ///< bursts for each recovery
};

class BurstHistory {
 public:
  enum class Reaction : std::uint8_t { kKeep, kCut, kRecover };

  explicit BurstHistory(const BurstRule& rule) : rule_(rule) {}

  /// A burst of this length has ended.
  void add(std::int64_t length);
  /// The shortest burst longer than shortest_burst; 0: none yet.
  [[nodiscard]] std::int64_t shortest() const { return shortest_; }
  /// The shortest of the last bursts, 2 at least. Precondition: there was one.
  [[nodiscard]] std::int64_t shortest_recent() const;
  /// The reaction to this inflation of the latest burst; the code's states emergency, recovery and
  /// contention.
  [[nodiscard]] Reaction react(double inflation) const;

 private:
  BurstRule rule_;
  std::int64_t bursts_ = 0;
  std::int64_t shortest_ = 0;
  std::vector<std::int64_t> recent_;  ///< a ring
};

/// The rule with the given values of burst_parameters().
[[nodiscard]] BurstRule burst_rule(const policy::ParameterSet& given);
/// The rule's parameters, and recover_factor, by which a recovery raises the quota. `periods` is a
/// policy's name for the unit of lengths, `code` the source of the defaults.
[[nodiscard]] std::vector<policy::ParameterSpec> burst_parameters(const std::string& periods,
                                                                  const std::string& code);

}  // namespace bubblesim::policies

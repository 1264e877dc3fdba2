// The routing of tokens to experts, and of experts to ranks. Together they give the loads of the
// ranks, which all wait for the busiest one in the following exchange (MoETuner, arXiv 2502.06643).
//
// Routing is the same in all layers and for the tokens of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::synth {

inline constexpr double kMostShare = 1e9;  ///< of an expert's tokens, in any unit

/// The rank of each expert; all ranks hold equally many.
enum class ExpertPlacement : std::uint8_t {
  kContiguous,  ///< neighbours by number, as Megatron-LM places them
  kBalanced,    ///< the most used first, each to the rank with room and the least load
};

struct ExpertRouting {
  double zipf = 0;             ///< the i-th expert's share is in proportion to 1 / i^zipf
  std::vector<double> shares;  ///< of the tokens, by expert, in any unit; empty: `zipf`
  std::optional<std::string> shares_csv;  ///< path of a table of the shares (read_shares)
  ExpertPlacement placement = ExpertPlacement::kContiguous;
  std::vector<std::uint32_t> ranks;  ///< by expert, the rank that holds it; empty: `placement`
};

/// The column `share` of a CSV file with a row for each expert, in order. Faults name file and
/// line.
[[nodiscard]] Result<std::vector<double>> read_shares(const std::string& path);

/// Shares of the tokens by expert; they add up to 1.
[[nodiscard]] std::vector<double> token_shares(const ExpertRouting& routing, std::uint32_t experts);

/// Tokens of each of `ranks` ranks over their mean. Faults: lists whose length is not the number of
/// experts, shares that are all 0, ranks that are missing or hold too many experts. Precondition:
/// `ranks` > 0 divides `experts`; `shares_csv` is read.
[[nodiscard]] Result<std::vector<double>> rank_loads(const ExpertRouting& routing,
                                                     std::uint32_t experts, std::uint32_t ranks);

/// The loads if only the busiest rank's is known: the first rank gets it, and the others share the
/// rest evenly. Precondition: 1 <= `busiest` <= `ranks`.
[[nodiscard]] std::vector<double> loads_beside(double busiest, std::uint32_t ranks);

/// The largest of `loads`; at least 1, their mean.
[[nodiscard]] double busiest_load(const std::vector<double>& loads);

}  // namespace bubblesim::synth

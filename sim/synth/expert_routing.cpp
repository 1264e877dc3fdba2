#include "sim/synth/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <string_view>

#include "sim/base/csv_table.hpp"

namespace bubblesim::synth {
namespace {

using Ranks = std::vector<std::uint32_t>;

Ranks contiguous(std::uint32_t experts, std::uint32_t ranks) {
  Ranks rank_of(experts);
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    rank_of[expert] = expert / (experts / ranks);
  }
  return rank_of;
}

Ranks balanced(const std::vector<double>& shares, std::uint32_t ranks) {
  std::vector<std::uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t e) { return shares[e]; });
  std::vector<double> load(ranks, 0);
  std::vector<std::size_t> held(ranks, 0);
  Ranks rank_of(shares.size());
  for (const std::uint32_t expert : order) {
    std::uint32_t best = 0;
    while (held[best] == shares.size() / ranks) ++best;
    for (std::uint32_t rank = best + 1; rank < ranks; ++rank) {
      if (held[rank] < shares.size() / ranks && load[rank] < load[best]) best = rank;
    }
    rank_of[expert] = best;
    load[best] += shares[expert];
    ++held[best];
  }
  return rank_of;
}

Result<void> check_given(const Ranks& rank_of, std::uint32_t experts, std::uint32_t ranks) {
  std::vector<std::uint32_t> held(ranks, 0);
  for (const std::uint32_t rank : rank_of) {
    if (rank >= ranks) {
      return fail({}, "/routing/ranks", fmt::format("found rank {}; expected 0 to {}", rank,
                                                    ranks - 1));
    }
    if (++held[rank] > experts / ranks) {
      return fail({}, "/routing/ranks",
                  fmt::format("rank {} has more than {} of the {} experts; expected as many on "
                              "each of {} ranks", rank, experts / ranks, experts, ranks));
    }
  }
  return {};
}

Result<void> check_length(const char* key, std::size_t found, std::uint32_t experts) {
  if (found == 0 || found == experts) return {};
  return fail({}, std::string("/routing/") + key,
              fmt::format("found {} values; expected one for each of the model's {} experts",
                          found, experts));
}

Result<void> check_shares(const std::vector<double>& shares) {
  if (shares.empty() || std::ranges::any_of(shares, [](double share) { return share > 0; })) {
    return {};
  }
  return fail({}, "/routing/shares", "found only 0; expected a share above 0");
}

}  // namespace

Result<std::vector<double>> read_shares(const std::string& path) {
  constexpr std::string_view kColumn = "share";
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  if (!table.has(kColumn)) {
    return fail(path, "line 1", "expected a column \"share\", and a row for each expert");
  }
  std::vector<double> shares;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto share = table.figure(row, kColumn);
    if (!share || *share < 0 || *share > kMostShare) {
      return table.fault(row, kColumn, "a number from 0 to 1e9");
    }
    shares.push_back(*share);
  }
  return shares;
}

std::vector<double> token_shares(const ExpertRouting& routing, std::uint32_t experts) {
  std::vector<double> shares = routing.shares;
  for (std::uint32_t i = 0; shares.size() < experts; ++i) {
    shares.push_back(std::pow(i + 1.0, -routing.zipf));
  }
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}

Result<std::vector<double>> rank_loads(const ExpertRouting& routing, std::uint32_t experts,
                                       std::uint32_t ranks) {
  BUBBLESIM_RETURN_IF_ERROR(check_length("shares", routing.shares.size(), experts));
  BUBBLESIM_RETURN_IF_ERROR(check_shares(routing.shares));
  BUBBLESIM_RETURN_IF_ERROR(check_length("ranks", routing.ranks.size(), experts));
  BUBBLESIM_RETURN_IF_ERROR(check_given(routing.ranks, experts, ranks));
  const std::vector<double> shares = token_shares(routing, experts);
  Ranks rank_of = routing.ranks;
  if (rank_of.empty()) {
    rank_of = routing.placement == ExpertPlacement::kBalanced ? balanced(shares, ranks)
                                                              : contiguous(experts, ranks);
  }
  std::vector<double> loads(ranks, 0);
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    loads[rank_of[expert]] += shares[expert] * ranks;
  }
  // Loads that differ by the rounding of their sums are the same.
  for (double& load : loads) load = std::round(load * 1e12) / 1e12;
  return loads;
}

std::vector<double> loads_beside(double busiest, std::uint32_t ranks) {
  std::vector<double> loads(ranks, busiest);
  const double others = std::max(ranks, 2U) - 1;
  std::fill(loads.begin() + 1, loads.end(), (ranks - busiest) / others);
  return loads;
}

double busiest_load(const std::vector<double>& loads) {
  return std::max(1.0, *std::ranges::max_element(loads));
}

}  // namespace bubblesim::synth

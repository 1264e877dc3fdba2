#include "sim/synth/stage_layers.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <numeric>
#include <string_view>

namespace bubblesim::synth {
namespace {

constexpr std::string_view kBlock = "block";  // every kind of a transformer's blocks ends so

// The run of blocks in a transformer; all layers of another model.
StageLayers body(const TimedModel& model) {
  const auto& layers = model.work.layers;
  const auto is_block = [&](std::uint32_t kind) {
    return model.work.kinds[kind].kind.ends_with(kBlock);
  };
  const auto first = std::find_if(layers.begin(), layers.end(), is_block);
  if (first == layers.end()) return {0, static_cast<std::uint32_t>(layers.size())};
  const auto last = std::find_if(layers.rbegin(), layers.rend(), is_block).base();
  return {static_cast<std::uint32_t>(first - layers.begin()),
          static_cast<std::uint32_t>(last - layers.begin())};
}

bool has_blocks(const TimedModel& model) {
  const StageLayers run = body(model);
  return model.work.kinds[model.work.layers[run.first]].kind.ends_with(kBlock);
}

std::string nearest_divisors(std::uint32_t total, std::uint32_t wanted) {
  std::uint32_t below = 1, above = total;
  for (std::uint32_t d = 1; d <= total; ++d) {
    if (total % d != 0) continue;
    if (d <= wanted) below = d;
    if (d >= wanted) {
      above = d;
      break;
    }
  }
  return fmt::format("{} or {}", below, above);
}

Result<std::vector<std::uint32_t>> even_counts(std::uint32_t total, std::uint32_t stages) {
  if (total % stages == 0) return std::vector<std::uint32_t>(stages, total / stages);
  return fail(fmt::format(
      "{} blocks do not divide into {} stages; stage counts that divide nearest: {} (or give "
      "\"layers_per_stage\")", total, stages, nearest_divisors(total, stages)));
}

// Least longest stage: tries, for growing limits, to fill stages from the left. The limit is the
// cost of some run of layers, found by bisection over integers.
std::vector<std::uint32_t> balanced_counts(const std::vector<std::int64_t>& costs,
                                           std::uint32_t stages) {
  const auto fill = [&](std::int64_t limit) {
    std::vector<std::uint32_t> counts(1, 0);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const std::size_t stages_left = stages - counts.size();
      const bool must_close = counts.back() > 0 && costs.size() - i <= stages_left;
      if (counts.back() > 0 && (sum + costs[i] > limit || must_close)) {
        counts.push_back(0);
        sum = 0;
      }
      sum += costs[i];
      ++counts.back();
    }
    return counts;
  };
  std::int64_t low = *std::max_element(costs.begin(), costs.end());
  std::int64_t high = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fill(middle).size() <= stages) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return fill(low);
}

Result<std::vector<std::uint32_t>> counts_of(const TimedModel& model, StageLayers run,
                                             std::uint32_t stages,
                                             const std::vector<std::uint32_t>& given) {
  const std::uint32_t total = run.last - run.first;
  if (!given.empty()) {
    const auto sum = std::accumulate(given.begin(), given.end(), std::uint64_t{0});
    if (given.size() == stages && sum == total) return given;
    return fail(fmt::format("\"layers_per_stage\" has {} entries with {} layers in all; expected "
                            "{} entries with {} layers", given.size(), sum, stages, total));
  }
  if (stages > total) {
    return fail(fmt::format("{} stages for {} layers; at most {}", stages, total, total));
  }
  if (has_blocks(model)) return even_counts(total, stages);
  std::vector<std::int64_t> costs;
  for (std::uint32_t i = run.first; i < run.last; ++i) {
    const TimedLayer& layer = model.layers[model.work.layers[i]];
    costs.push_back(to_ns(layer.forward_time + layer.backward_time));
  }
  return balanced_counts(costs, stages);
}

}  // namespace

Result<std::vector<StageLayers>> split_layers(const TimedModel& model, std::uint32_t stages,
                                              const std::vector<std::uint32_t>& blocks_per_stage) {
  const StageLayers run = body(model);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto counts,
                             counts_of(model, run, stages, blocks_per_stage));
  std::vector<StageLayers> out;
  std::uint32_t next = run.first;
  for (const std::uint32_t count : counts) {
    out.push_back({next, next + count});
    next += count;
  }
  out.front().first = 0;
  out.back().last = static_cast<std::uint32_t>(model.work.layers.size());
  return out;
}

}  // namespace bubblesim::synth

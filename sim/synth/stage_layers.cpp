#include "sim/synth/stage_layers.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/nearest.hpp"

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

namespace {

struct NamedRun {
  std::string name;
  StageLayers layers;
};

std::uint32_t layers_of(const model::BranchSpec& branch) {
  return branch.kind == model::BranchSpec::Kind::kEmbeddingBag ? 1 : branch.layers;
}

// Every name that a stage may give, with its layers (sim/model: branches in their order, copies
// after each other, then the join).
std::vector<NamedRun> named_runs(const model::GraphSpec& spec, std::uint32_t layers) {
  std::vector<NamedRun> out;
  std::uint32_t next = 0;
  for (const model::BranchSpec& branch : spec.branches) {
    const std::uint32_t length = layers_of(branch);
    out.push_back({branch.name, {next, next + length * branch.repeat}});
    for (std::uint32_t copy = 0; copy < branch.repeat; ++copy) {
      out.push_back({fmt::format("{}/{}", branch.name, copy), {next, next + length}});
      next += length;
    }
  }
  out.push_back({"join", {next, layers}});
  return out;
}

Result<StageLayers> find_branches(const GraphStageSpec& stage, const model::ModelSpec& model,
                                  const model::ModelWork& work) {
  const auto* spec = std::get_if<model::GraphSpec>(&model.network);
  if (spec == nullptr) return fail(model.name + " has no branches; expected \"layers\"");
  const auto runs = named_runs(*spec, static_cast<std::uint32_t>(work.layers.size()));
  std::vector<StageLayers> found;
  for (const std::string& name : stage.branches) {
    const auto located = std::ranges::find(runs, name, &NamedRun::name);
    if (located == runs.end()) {
      std::vector<std::string> names;
      for (const NamedRun& run : runs) names.push_back(run.name);
      return fail(unknown_name_message("branch", name, names));
    }
    found.push_back(located->layers);
  }
  std::ranges::sort(found, {}, &StageLayers::first);
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i].first != found[i - 1].last) {
      return fail("branches of one stage have to follow each other; expected \"" +
                  stage.branches.front() + "\" and its neighbours");
    }
  }
  return StageLayers{found.front().first, found.back().last};
}

Result<void> check_cover(std::vector<StageLayers> runs, std::uint32_t layers) {
  std::ranges::sort(runs, {}, &StageLayers::first);
  std::uint32_t next = 0;
  for (const StageLayers& run : runs) {
    if (run.first > next) return fail(fmt::format("layers {} to {} are in no stage", next,
                                                  run.first - 1));
    if (run.first < next) return fail(fmt::format("layer {} is in two stages", run.first));
    next = run.last;
  }
  if (next == layers) return {};
  return fail(next < layers ? fmt::format("layers {} to {} are in no stage", next, layers - 1)
                            : fmt::format("found layers up to {}; the model has {}", next, layers));
}

// Stages on a shortest path, both ends included.
std::optional<std::vector<std::uint32_t>> path(const pipeline::StageGraph& graph,
                                               std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> before(graph.size(), graph.size());
  std::vector<std::uint32_t> reached{from};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t next : graph.stages[reached[i]].consumers) {
      if (before[next] != graph.size()) continue;
      before[next] = reached[i];
      reached.push_back(next);
    }
  }
  if (before[to] == graph.size()) return std::nullopt;
  std::vector<std::uint32_t> out{to};
  while (out.back() != from) out.push_back(before[out.back()]);
  std::reverse(out.begin(), out.end());
  return out;
}

std::size_t place_of(const pipeline::StageGraph& graph, std::uint32_t from, std::uint32_t to) {
  const auto& consumers = graph.stages[from].consumers;
  return static_cast<std::size_t>(std::find(consumers.begin(), consumers.end(), to) -
                                  consumers.begin());
}

// Layers whose outputs the layer reads. A model that does not say is a chain.
std::vector<std::uint32_t> inputs_of(const model::ModelWork& work, std::uint32_t layer) {
  if (!work.inputs.empty()) return work.inputs[layer];
  if (layer == 0) return {};
  return {layer - 1};
}

}  // namespace

Result<pipeline::StageGraph> graph_of(const PlanSpec& plan) {
  std::vector<pipeline::StageEdge> edges;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    for (const std::uint32_t before : plan.stages[s].after) edges.emplace_back(before, s);
    sizes.push_back(plan.stages[s].micro_batch);
  }
  return pipeline::make_stage_graph(static_cast<std::uint32_t>(plan.stages.size()), edges, sizes,
                                    plan.micro_batches());
}

Result<std::vector<StageLayers>> graph_layers(const PlanSpec& plan, const model::ModelSpec& model,
                                              const model::ModelWork& work) {
  std::vector<StageLayers> out;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const GraphStageSpec& stage = plan.stages[s];
    if (stage.branches.empty()) {
      out.push_back({stage.first, stage.last});
      continue;
    }
    auto found = find_branches(stage, model, work);
    if (!found) {
      found.error().place = fmt::format("/stages/{}/branches", s);
      return tl::make_unexpected(std::move(found).error());
    }
    out.push_back(*found);
  }
  BUBBLESIM_RETURN_IF_ERROR(check_cover(out, static_cast<std::uint32_t>(work.layers.size())));
  return out;
}

// Stages of a second copy of the model (two-way schedules) have no edge to the first copy's, so
// that each layer's output is followed in each copy.
Result<std::vector<std::vector<double>>> sent_bytes(const PlanSpec& plan,
                                                    const pipeline::StageGraph& graph,
                                                    const std::vector<StageLayers>& layers,
                                                    const model::ModelWork& work) {
  std::vector<std::vector<double>> out(graph.size());
  for (std::uint32_t s = 0; s < graph.size(); ++s) {
    out[s].assign(graph.stages[s].consumers.size(), 0);
  }
  const auto bytes_of = [&](std::uint32_t layer) {
    return work.kinds[work.layers[layer]].output_bytes;
  };
  if (work.inputs.empty() && plan.stages.empty()) {  // a schedule's own stages follow the layers
    for (std::uint32_t s = 0; s < graph.size(); ++s) {
      std::fill(out[s].begin(), out[s].end(), bytes_of(layers[s].last - 1));
    }
    return out;
  }
  const bool two_copies = graph.size() > 1 && layers.front() == layers[graph.size() / 2];
  const std::uint32_t depth = two_copies ? graph.size() / 2 : graph.size();
  std::vector<std::uint32_t> stage_of(work.layers.size());
  for (std::uint32_t s = 0; s < depth; ++s) {
    std::fill(stage_of.begin() + layers[s].first, stage_of.begin() + layers[s].last, s);
  }
  std::set<std::pair<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>> sent;
  for (std::uint32_t reader = 0; reader < work.layers.size(); ++reader) {
    for (const std::uint32_t layer : inputs_of(work, reader)) {
      const std::uint32_t from = stage_of[layer];
      const std::uint32_t to = stage_of[reader];
      if (from == to) continue;
      const auto way = path(graph, from, to);
      if (!way) {
        Error error;
        error.place = fmt::format("/stages/{}/after", to);
        error.message = fmt::format("stage {} reads layer {}, which is in stage {}; expected {} in "
                                    "\"after\", or a stage that comes after it", to, layer, from,
                                    from);
        return tl::make_unexpected(std::move(error));
      }
      for (std::size_t i = 0; i + 1 < way->size(); ++i) {
        const std::uint32_t a = (*way)[i];
        const std::uint32_t b = (*way)[i + 1];
        if (!sent.insert({layer, {a, b}}).second) continue;
        // A relaying stage passes on in its own micro-batches.
        const double bytes = bytes_of(layer) / graph.stages[from].micro_batch_size *
                             graph.stages[a].micro_batch_size;
        for (std::uint32_t copy = 0; copy < graph.size(); copy += depth) {
          out[a + copy][place_of(graph, a, b)] += bytes;
        }
      }
    }
  }
  return out;
}

}  // namespace bubblesim::synth

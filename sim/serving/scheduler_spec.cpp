#include "sim/serving/scheduler_spec.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/csv_table.hpp"

namespace bubblesim::serving {
namespace {

Result<void> check_sizes(const SchedulerSpec& spec) {
  if (spec.max_num_batched_tokens == 0) {
    return fail("max_num_batched_tokens is 0; expected 1 or more");
  }
  if (spec.max_num_seqs == 0) return fail("max_num_seqs is 0; expected 1 or more");
  if (spec.max_model_len < 2) {
    return fail("max_model_len is " + std::to_string(spec.max_model_len) +
                "; expected 2 or more: a prompt and an output");
  }
  if (spec.block_size == 0) return fail("block_size is 0; expected 1 or more");
  if (spec.kv_blocks == 0) return fail("a KV cache of 0 blocks; expected 1 or more");
  return {};
}

bool is_share(double value) { return value >= 0 && value < 1; }

Result<void> check_speculation(const SchedulerSpec& spec) {
  const Speculation& drafts = spec.speculation;
  if (drafts.tokens == 0) return {};
  if (spec.pacing != Pacing::kSynchronous) {
    return fail("speculation with steps that are scheduled ahead; expected pacing \"synchronous\": "
                "what the next step computes depends on what is accepted");
  }
  if (!drafts.recorded->empty()) {
    const std::uint32_t most = *std::ranges::max_element(*drafts.recorded);
    if (most <= drafts.tokens) return {};
    return fail("recorded " + std::to_string(most) + " accepted drafts; expected at most the " +
                std::to_string(drafts.tokens) + " that a step drafts");
  }
  double sum = 0;
  for (const double chance : drafts.accepted) {
    if (!(chance >= 0)) return fail("a chance of accepted drafts is below 0");
    sum += chance;
  }
  if (drafts.accepted.size() != std::size_t{drafts.tokens} + 1 || std::abs(sum - 1) > 1e-6) {
    return fail("found " + std::to_string(drafts.accepted.size()) +
                " chances of accepted drafts with the sum " + std::to_string(sum) + "; expected " +
                std::to_string(drafts.tokens + 1) + ", of 0 to " + std::to_string(drafts.tokens) +
                " tokens, with the sum 1");
  }
  return {};
}

}  // namespace

std::vector<double> independent_acceptance(std::uint32_t tokens, double chance) {
  std::vector<double> accepted;
  double all = 1;  // of those so far
  for (std::uint32_t i = 0; i < tokens; ++i, all *= chance) accepted.push_back(all * (1 - chance));
  accepted.push_back(all);
  return accepted;
}

SchedulerSpec vllm_settings() {
  SchedulerSpec spec;
  spec.enable_prefix_caching = true;
  spec.pacing = Pacing::kOneAhead;
  return spec;
}

SchedulerSpec sarathi_settings(std::uint32_t chunk_budget) {
  SchedulerSpec spec;
  spec.max_num_batched_tokens = chunk_budget;
  return spec;
}

SchedulerSpec orca_settings() {
  SchedulerSpec spec;
  spec.chunking = Chunking::kWhole;
  spec.reserve = Reserve::kWholeRequest;
  return spec;
}

Result<void> check(const SchedulerSpec& spec) {
  BUBBLESIM_RETURN_IF_ERROR(check_sizes(spec));
  BUBBLESIM_RETURN_IF_ERROR(check_speculation(spec));
  if (!is_share(spec.watermark)) return fail("watermark is outside of [0, 1)");
  if (spec.watermark > 0 && spec.reserve == Reserve::kWholeRequest) {
    return fail("watermark with whole requests reserved; expected 0: their blocks are kept");
  }
  if (!is_share(spec.prefix_hit_rate)) return fail("prefix_hit_rate is outside of [0, 1)");
  const bool swaps_somehow = spec.swap_group > 0 || spec.swap_reuse ||
                             spec.swap_timing != SwapTiming::kBefore;
  if (swaps_somehow && spec.preemption != CachePreemption::kSwap) {
    return fail("a setting of swaps without preemption by swapping; expected preemption \"swap\"");
  }
  if (spec.priority_period > 0 &&
      (spec.order != Order::kPriority || spec.preemption != CachePreemption::kSwap ||
       spec.reserve == Reserve::kWholeRequest)) {
    return fail("priorities that change; expected order \"priority\", preemption \"swap\", and no "
                "whole requests reserved");
  }
  if (spec.chunking == Chunking::kWhole && spec.long_prefill_token_threshold != 0) {
    return fail("long_prefill_token_threshold with whole prompts; expected 0: it cuts prompts");
  }
  if (spec.mixing == Mixing::kPromptsApart && spec.chunking == Chunking::kChunks) {
    return fail("steps of prompts alone with chunked prompts; expected whole prompts");
  }
  return {};
}

Result<std::vector<std::uint32_t>> read_acceptance(const std::string& path,
                                                   std::uint32_t drafted) {
  constexpr std::string_view kColumn = "accepted";
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  if (!table.has(kColumn)) return fail(path, "line 1", "found no column \"accepted\"");
  std::vector<std::uint32_t> accepted;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::optional<double> tokens = table.figure(row, kColumn);
    if (!tokens || *tokens < 0 || *tokens > drafted || *tokens != std::floor(*tokens)) {
      return table.fault(row, kColumn, "a whole number of 0 to " + std::to_string(drafted) +
                                           ", the tokens that a step drafts");
    }
    accepted.push_back(static_cast<std::uint32_t>(*tokens));
  }
  return accepted;
}

}  // namespace bubblesim::serving

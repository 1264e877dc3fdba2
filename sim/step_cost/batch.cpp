#include "sim/step_cost/batch.hpp"

#include <algorithm>

namespace bubblesim::step_cost {
namespace {

constexpr std::uint32_t kLargestGraph = 512;

}  // namespace

bool fits_graph(std::uint32_t tokens, const CaptureSizes& sizes) {
  return !sizes.empty() && tokens <= sizes.back();
}

std::uint32_t padded_tokens(std::uint32_t tokens, const CaptureSizes& sizes) {
  const auto size = std::lower_bound(sizes.begin(), sizes.end(), tokens);
  return size == sizes.end() ? tokens : *size;
}

CaptureSizes vllm_capture_sizes(const serving::SchedulerSpec& scheduler) {
  const std::uint64_t decoding =
      std::uint64_t{scheduler.max_num_seqs} * (1 + scheduler.speculation.tokens);
  const std::uint64_t most = std::min({2 * decoding, std::uint64_t{kLargestGraph},
                                       std::uint64_t{scheduler.max_num_batched_tokens}});
  CaptureSizes sizes;
  for (std::uint32_t size = 1; size <= most;) {
    sizes.push_back(size);
    if (size < 8) size *= 2;
    else size += size < 256 ? 8 : 16;
  }
  return sizes;
}

void set_batch(const serving::ScheduledStep& step, const CaptureSizes& sizes, Batch& batch) {
  batch.tokens = 0;
  batch.sequences = static_cast<std::uint32_t>(step.sequences.size());
  batch.chunks.clear();
  batch.decodes.clear();
  for (const serving::StepSequence& sequence : step.sequences) {
    batch.tokens += sequence.new_tokens;
    if (sequence.new_tokens == 1) {
      batch.decodes.push_back(sequence.context + 1);
    } else {
      batch.chunks.push_back({sequence.new_tokens, sequence.context});
    }
  }
  batch.padded_tokens = batch.group_tokens = padded_tokens(batch.tokens, sizes);
  batch.in_graph = batch.decodes_only() && fits_graph(batch.tokens, sizes);
}

Batch idle_batch() {
  Batch batch;
  batch.tokens = batch.padded_tokens = batch.group_tokens = batch.sequences = 1;
  batch.decodes = {1};
  return batch;
}

}  // namespace bubblesim::step_cost

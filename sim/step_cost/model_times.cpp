#include "sim/step_cost/model_times.hpp"

#include <algorithm>
#include <variant>

#include "sim/base/check.hpp"
#include "sim/model/kernel_time.hpp"

namespace bubblesim::step_cost {
namespace {

model::Split split_of(const ServerLayout& layout) {
  model::Split split;
  split.tensor = layout.tensor;
  split.expert = layout.expert_ranks();
  return split;
}

}  // namespace

ModelTimes::ModelTimes(const model::ModelSpec& model, const ServerLayout& layout,
                       const hardware::GpuSpec& gpu, const model::Efficiency& efficiency,
                       model::Precision precision)
    : model_(model),
      split_(split_of(layout)),
      gpu_(gpu),
      efficiency_(efficiency),
      precision_(precision) {}

Result<void> ModelTimes::check_work(const model::ModelSpec& model, const ServerLayout& layout) {
  BUBBLESIM_RETURN_IF_ERROR(
      model::decode_work(model, split_of(layout), model::Precision::kBf16, 1, 1));
  return {};
}

double ModelTimes::batch_us(const Batch& batch) {
  model::IterationSums sums;
  for (const PromptChunk& chunk : batch.chunks) sums.prompts.add({chunk.tokens, chunk.cached});
  for (const std::uint32_t length : batch.decodes) sums.singles.add({1, length - 1});
  // Sequences that only fill a graph up.
  const std::uint32_t filling = batch.padded_tokens - batch.tokens;
  for (std::uint32_t i = 0; i < filling; ++i) sums.singles.add({1, 0});
  sums.tokens = batch.padded_tokens;
  sums.rows = batch.sequences + filling;
  sums.group_tokens = batch.group_tokens;
  return sums_us(sums, batch.in_graph);
}

double ModelTimes::sums_us(const model::IterationSums& sums, bool in_graph) const {
  const auto work = model::summed_iteration_work(model_, split_, precision_, sums);
  BUBBLESIM_CHECK(work.has_value(), "a step whose work cannot be made");
  std::vector<double> layer_us(work->kinds.size(), 0);
  for (std::size_t kind = 0; kind < work->kinds.size(); ++kind) {
    for (const model::WorkItem& item : work->kinds[kind].forward) {
      if (const auto* kernel = std::get_if<model::KernelWork>(&item)) {
        layer_us[kind] += 1e6 * to_seconds(time_kernel(*kernel, gpu_, efficiency_).duration);
      }
    }
  }
  double sum = 0;
  std::size_t operations = 0;
  for (const std::uint32_t kind : work->layers) {
    sum += layer_us[kind];
    operations += work->kinds[kind].forward.size();
  }
  const double gaps = static_cast<double>(std::max<std::size_t>(operations, 1) - 1);
  return sum + gaps * 1e6 * to_seconds(in_graph ? gap_in_graph(gpu_) : gpu_.stream_gap);
}

double ModelTimes::experts_us(double) { return 0; }

void ModelTimes::add_counters(CounterSet&) const {}

}  // namespace bubblesim::step_cost

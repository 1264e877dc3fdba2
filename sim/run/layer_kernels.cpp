#include "sim/run/layer_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "sim/step_cost/layer_file.hpp"
#include "sim/step_cost/table_times.hpp"

namespace bubblesim::run {
namespace {

constexpr CounterSpec kOtherGpu{"layer_tables_of_other_gpu", Severity::kNotice,
                                "servers whose layer times were measured on another GPU than the "
                                "one simulated; they are taken as they are"};

/// What the tables are of, for as long as anybody looks at them.
struct Source {
  step_cost::LayerTables tables;
  const step_cost::RankTables* rank = nullptr;  ///< into `tables`
  model::TransformerSpec model;
  step_cost::ServerLayout layout;
  step_cost::CaptureSizes sizes;
  std::uint32_t sm_count = 0;
};

class TableKernels final : public synth::StepKernels {
 public:
  explicit TableKernels(std::shared_ptr<const Source> source)
      : source_(std::move(source)),
        times_(*source_->rank, source_->model, source_->layout, source_->sm_count) {}

  Duration of(const serving::Step& step, workload::StepTokens tokens) override {
    step_cost::set_batch(step, source_->sizes, batch_);
    batch_.padded_tokens = std::max(batch_.padded_tokens, tokens.own);
    const double us = times_.batch_us(batch_) + times_.experts_us(tokens.group);
    return std::max(Duration{1}, Duration{std::llround(1e3 * us)});
  }

  void add_counters(CounterSet& counters) const { times_.add_counters(counters); }

 private:
  std::shared_ptr<const Source> source_;
  step_cost::TableTimes times_;
  step_cost::Batch batch_;
};

Result<void> check_experts(const Source& source, const std::string& path) {
  const bool wanted = source.model.mixture.has_value();
  if (wanted == source.rank->experts.has_value()) return {};
  return fail(path, {},
              wanted ? "has no times of experts, and the model has experts; expected the tables of "
                       "that model"
                     : "has times of experts, and the model has none; expected the tables of that "
                       "model");
}

}  // namespace

serving::Step largest_step(const serving::SchedulerSpec& spec) {
  serving::Step step;
  const std::uint32_t decodes = std::min(spec.max_num_seqs, spec.max_num_batched_tokens) - 1;
  for (std::uint32_t i = 0; i < decodes; ++i) step.add({.context = spec.max_model_len - 1});
  const std::uint32_t chunk =
      std::min(spec.max_num_batched_tokens - decodes, spec.max_model_len - 1);
  step.add({.new_tokens = chunk, .context = spec.max_model_len - chunk, .prefill = true});
  return step;
}

step_cost::ServerLayout layout_of(const synth::ServerPlan& plan) {
  step_cost::ServerLayout layout;
  layout.tensor = plan.split.tensor;
  layout.data = plan.members;
  layout.expert_parallel = plan.shares_experts();
  return layout;
}

Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                           const synth::ServerPlan& plan) {
  auto tables = step_cost::read_layer_file(path);
  if (!tables) return tl::make_unexpected(std::move(tables.error().front()));
  auto source = std::make_shared<Source>();
  source->tables = *std::move(tables);
  const auto rank = source->tables.of_tensor(plan.split.tensor);
  if (!rank) return fail(path, {}, rank.error().message);
  source->rank = *rank;
  source->model = std::get<model::TransformerSpec>(plan.request.model.network);
  source->layout = layout_of(plan);
  source->sizes = step_cost::vllm_capture_sizes(plan.scheduler.max_num_seqs);
  source->sm_count = plan.request.gpu.sm_count;
  BUBBLESIM_RETURN_IF_ERROR(check_experts(*source, path));
  MeasuredKernels made;
  if (source->tables.gpu != plan.request.gpu.name) made.counters.add(kOtherGpu);
  TableKernels largest(source);
  const std::uint32_t budget = plan.scheduler.max_num_batched_tokens;
  (void)largest.of(largest_step(plan.scheduler), {budget, plan.members * budget});
  largest.add_counters(made.counters);
  made.maker = [source] { return std::make_unique<TableKernels>(source); };
  return made;
}

}  // namespace bubblesim::run

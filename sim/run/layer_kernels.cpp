#include "sim/run/layer_kernels.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "sim/step_cost/layer_file.hpp"
#include "sim/step_cost/table_times.hpp"

namespace bubblesim::run {
namespace {

/// What the tables are of, for as long as anybody looks at them.
struct Source {
  step_cost::LayerTables tables;
  const step_cost::RankTables* rank = nullptr;  ///< into `tables`
  model::TransformerSpec model;
  step_cost::ServerLayout layout;
  std::uint32_t sm_count = 0;
};

}  // namespace

Result<MeasuredKernels> load_layer_kernels(const std::string& path,
                                           const synth::ServerPlan& plan) {
  auto tables = step_cost::read_layer_file(path);
  if (!tables) return tl::make_unexpected(std::move(tables.error().front()));
  auto source = std::make_shared<Source>();
  source->tables = *std::move(tables);
  const model::ModelSpec& model = plan.request.model;
  const auto rank = step_cost::tables_for(source->tables, model, plan.split.tensor);
  if (!rank) return fail(path, {}, rank.error().message);
  source->rank = *rank;
  source->model = std::get<model::TransformerSpec>(model.network);
  source->layout = layout_of(plan);
  source->sm_count = plan.request.gpu.sm_count;
  const auto times = [source]() -> std::unique_ptr<step_cost::KernelTimes> {
    return std::make_unique<step_cost::TableTimes>(*source->rank, source->model, source->layout,
                                                   source->sm_count);
  };
  MeasuredKernels made = measured_kernels(times, plan, {largest_step(plan.scheduler)});
  step_cost::count_tables(source->tables, model, plan.request.gpu.name, made.counters);
  if (source->rank->mixed.empty() && plan.scheduler.max_num_seqs > 1) {
    made.counters.add(kLayersOfOneSequence);
  }
  return made;
}

}  // namespace bubblesim::run

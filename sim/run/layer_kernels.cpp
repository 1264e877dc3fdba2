#include "sim/run/layer_kernels.hpp"

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
  std::uint32_t sm_count = 0;
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
  source->sm_count = plan.request.gpu.sm_count;
  BUBBLESIM_RETURN_IF_ERROR(check_experts(*source, path));
  const auto times = [source]() -> std::unique_ptr<step_cost::KernelTimes> {
    return std::make_unique<step_cost::TableTimes>(*source->rank, source->model, source->layout,
                                                   source->sm_count);
  };
  MeasuredKernels made = measured_kernels(times, plan, {largest_step(plan.scheduler)});
  if (source->tables.gpu != plan.request.gpu.name) made.counters.add(kOtherGpu);
  return made;
}

}  // namespace bubblesim::run

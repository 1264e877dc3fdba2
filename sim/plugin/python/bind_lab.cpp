// What judges of measured tables (notebooks/lab) have simulated.
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/validate/serving/serve_measured.hpp"
#include "sim/validate/training_job.hpp"

namespace bubblesim::plugin::python {
namespace {

/// A request as Python has it: its name, its arrival (ns), its tokens of prompt and output, and the
/// hashes of its prompt.
using GivenRequest = std::tuple<std::string, std::int64_t, std::uint32_t, std::uint32_t,
                                std::vector<std::uint64_t>>;

validate::MeasuredLoad load_of(const std::vector<GivenRequest>& given,
                               std::uint32_t tokens_per_hash) {
  validate::MeasuredLoad out;
  for (const auto& [name, arrival, prompt, output, hashes] : given) {
    out.names.push_back(name);
    serving::Request& request = out.requests.emplace_back();
    request.number = out.requests.size() - 1;
    request.arrival = kSimStart + Duration(arrival);
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    request.prefix.hashes = hashes;
    request.prefix.tokens_per_hash = hashes.empty() ? 0 : tokens_per_hash;
  }
  return out;
}

using Times = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::pair<std::uint32_t, std::uint32_t> closed_form_cases(
    const std::string& schedule, std::uint32_t ranks, std::uint32_t micro_batches,
    std::uint32_t chunks, const std::vector<Times>& given) {
  pipeline::ScheduleRequest request;
  request.ranks = ranks;
  request.micro_batches = micro_batches;
  request.chunks = chunks;
  std::vector<pipeline::StageTimes> times;
  for (const auto& [forward, input_grad, weight_grad] : given) {
    times.push_back({forward, input_grad, weight_grad});
  }
  const auto found = validate::closed_form_cases(schedule, request, times);
  return {found.cases, found.equal};
}

void bind_pipelines(py::module_& module) {
  module.def("schedules", [] {
    std::vector<std::string> out;
    for (const auto& spec : pipeline::schedule_specs()) out.push_back(spec.name);
    return out;
  });
  module.def("closed_form_cases", &closed_form_cases);
  module.def("graph_makespan",
             [](std::uint32_t stages, std::uint32_t micro_batches,
                const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
               return good(validate::graph_makespan(stages, micro_batches, edges));
             });
}

}  // namespace

void bind_lab(py::module_& module) {
  module.def("serve_measured", [module](const std::string& settings,
                                        const std::vector<GivenRequest>& requests,
                                        std::uint32_t tokens_per_hash, const std::string& engine,
                                        const std::string& layers, const std::string& steps) {
    const validate::MeasuredLoad load = load_of(requests, tokens_per_hash);
    const validate::ServeSources sources{config_folder(module, {}), engine, layers, steps};
    CheckedResult<Json> served;
    {
      const py::gil_scoped_release unlocked;
      served = validate::serve_measured(settings, load, sources);
    }
    return compact_text(good(std::move(served)));
  });
  bind_pipelines(module);
}

}  // namespace bubblesim::plugin::python

// What judges of measured tables (notebooks/lab) have simulated.
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/validate/serving/serve_measured.hpp"
#include "sim/validate/sharing_json.hpp"
#include "sim/validate/validate.hpp"

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

/// Of a simulation from any thread; called with Python's lock, which the simulation has given up.
std::function<void(const std::string&)> told(const py::object& progress) {
  if (progress.is_none()) return {};
  return [&progress](const std::string& text) {
    const py::gil_scoped_acquire locked;
    progress(text);
  };
}

template <class Judge>
std::string text_of(Judge judge) {
  CheckedResult<Json> judged;
  {
    const py::gil_scoped_release unlocked;
    judged = judge();
  }
  return compact_text(good(std::move(judged)));
}

}  // namespace

void bind_lab(py::module_& module) {
  module.def("serve_measured", [module](const std::string& settings,
                                        const std::vector<GivenRequest>& requests,
                                        std::uint32_t tokens_per_hash, const std::string& engine,
                                        const std::string& layers, const std::string& steps) {
    const validate::MeasuredLoad load = load_of(requests, tokens_per_hash);
    const validate::ServeSources sources{config_folder(module, {}), engine, layers, steps};
    return text_of([&] { return validate::serve_measured(settings, load, sources); });
  });
  module.def("sharing_tables_in", &validate::sharing_tables_in);
  module.def("judge_sharing",
             [module](std::vector<std::string> tables, std::string setting,
                      std::vector<std::string> systems, std::vector<std::size_t> rows,
                      std::map<std::string, double> changes, std::int64_t window_ns,
                      std::size_t threads, const py::object& progress) {
               const validate::SharingRequest request{
                   config_folder(module, {}), std::move(tables),   std::move(setting),
                   std::move(systems),        std::move(rows),     std::move(changes),
                   Duration{window_ns},       threads,             told(progress)};
               return text_of([&] {
                 return validate::judge_sharing_tables(request, policies::judged_policies());
               });
             });
  module.def("judge_training_table", [module](const std::string& path, const std::string& setting,
                                              std::size_t threads, const py::object& progress) {
    const validate::ValidateRequest request{config_folder(module, {}), threads, told(progress)};
    return text_of([&] { return validate::judge_training_file(path, setting, request); });
  });
  module.def("judge_check", [module](const std::string& name, const std::string& data,
                                     std::size_t threads) {
    const validate::ValidateRequest request{config_folder(module, {}), threads, {}};
    return text_of([&] { return validate::judge_check(name, data, request); });
  });
}

}  // namespace bubblesim::plugin::python

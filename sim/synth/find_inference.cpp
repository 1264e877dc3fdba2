#include "sim/synth/find_inference.hpp"

#include <algorithm>
#include <utility>

#include "sim/model/efficiency_file.hpp"
#include "sim/model/model_file.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {
namespace {

CheckedResult<model::Efficiency> efficiency_of(const InferenceNames& names,
                                               const hardware::GpuSpec& gpu,
                                               const std::string& configs) {
  if (names.efficiency) return model::find_efficiency(*names.efficiency, configs + "/efficiency");
  return device_efficiency(gpu, configs);
}

Generation generation_of(const InferenceNames& names, const std::string& configs,
                         Errors& errors) {
  Generation out;
  out.prompt_tokens = names.prompt_tokens.value_or(1);
  out.output_tokens = names.output_tokens;
  out.decode = names.decode;
  if (!names.speculation) return out;
  DraftSpeculation& speculation = out.speculation.emplace();
  speculation.draft = take(model::find_model(names.speculation->draft, configs + "/models"),
                           errors);
  speculation.tree = names.speculation->tree;
  speculation.acceptance = names.speculation->acceptance;
  return out;
}

}  // namespace

model::TokenTree tree_of(std::uint32_t depth, std::uint32_t width) {
  model::TokenTree tree = model::chain(depth);
  if (depth > 0) tree.expansion[std::min<std::uint32_t>(depth, 3) - 1] = width;
  return tree;
}

CheckedResult<InferenceRequest> find_inference(const InferenceNames& names,
                                               const hardware::GpuSpec& gpu,
                                               const std::string& configs) {
  Errors errors;
  InferenceRequest out;
  out.model = take(model::find_model(names.model, configs + "/models"), errors);
  out.batch = names.batch;
  out.precision = names.precision;
  out.step_host = names.step_host;
  if (names.prompt_tokens || names.engine) {
    out.shape = generation_of(names, configs, errors);
  } else {
    out.shape = OnePass{names.sequence, names.attention};
  }
  out.gpu = gpu;
  out.efficiency = take(efficiency_of(names, gpu, configs), errors);
  if (errors.empty()) {
    auto wrong = precision_fault(out.efficiency, out.precision, gpu.name);
    if (wrong) errors.push_back({{}, "/precision", *std::move(wrong)});
  }
  out.software = take(find_software(names.software, configs + "/software"), errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

}  // namespace bubblesim::synth

#include "sim/synth/software_spec.hpp"

#include <array>

#include "sim/base/input_file.hpp"
#include "sim/hardware/constant_reader.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::array<Choice<ComputeWait>, 3> kComputeWaits{{
    {"none", ComputeWait::kNone}, {"action", ComputeWait::kAction},
    {"layer", ComputeWait::kLayer}}};
constexpr std::array<Choice<ExchangeWait>, 2> kExchangeWaits{
    {{"stream", ExchangeWait::kStream}, {"host", ExchangeWait::kHost}}};
constexpr std::array<Choice<PipelineWait>, 2> kWaits{
    {{"stream", PipelineWait::kStream}, {"host", PipelineWait::kHost}}};
constexpr std::array<Choice<PipelineTensors>, 2> kPipelineTensors{
    {{"whole", PipelineTensors::kWhole}, {"scattered", PipelineTensors::kScattered}}};
constexpr std::array<Choice<GradientNorm>, 2> kNorms{
    {{"none", GradientNorm::kNone}, {"global", GradientNorm::kGlobal}}};
constexpr std::array<Choice<model::BackwardExchanges>, 2> kExchanges{
    {{"overlapped", model::BackwardExchanges::kOverlapped},
     {"serial", model::BackwardExchanges::kSerial}}};

// Far beyond any host cost of a call, and of an iteration.
constexpr Duration kLongest = std::chrono::seconds(4);

Duration span(ObjectReader& root, std::string_view key) {
  return hardware::constant(root, key).duration("value", {Duration::zero(), kLongest});
}

double slowdown(ObjectReader& root, std::string_view key) {
  ObjectReader section = root.child("slowdown");
  if (!section.present()) return 1;
  ObjectReader reader = hardware::constant(section, key);
  hardware::check_unit(reader, "times");
  return reader.number("value", {0.1, 10});
}

}  // namespace

SoftwareSpec read_software(ObjectReader& root) {
  SoftwareSpec out;
  out.launch_call = span(root, "launch_call");
  out.forward_gap = span(root, "forward_gap");
  out.backward_gap = span(root, "backward_gap");
  out.optimizer_gap = span(root, "optimizer_gap");
  out.collective_call = span(root, "collective_call");
  out.transfer_call = span(root, "transfer_call");
  out.action = span(root, "action");
  out.iteration = span(root, "iteration");
  out.slowdown = {slowdown(root, "gemm"), slowdown(root, "batched_gemm"),
                  slowdown(root, "attention"), slowdown(root, "streaming")};
  out.logits = hardware::constant(root, "logits").choice("value", model::kWidePrecisionNames);
  ObjectReader softmax = hardware::constant(root, "fused_softmax", Presence::kOptional);
  hardware::check_unit(softmax, "tokens");
  if (softmax.present()) {
    out.fused_softmax = softmax.integer<std::uint64_t>("value", {0, hardware::kMaxCount});
  }
  out.compute_wait = hardware::constant(root, "compute_wait").choice("value", kComputeWaits);
  out.exchange_wait = hardware::constant(root, "exchange_wait").choice("value", kExchangeWaits);
  out.pipeline_wait = hardware::constant(root, "pipeline_wait").choice("value", kWaits);
  out.pipeline_tensors =
      hardware::constant(root, "pipeline_tensors").choice("value", kPipelineTensors);
  out.gradient_norm = hardware::constant(root, "gradient_norm").choice("value", kNorms);
  out.backward_exchanges =
      hardware::constant(root, "backward_exchanges").choice("value", kExchanges);
  root.finish();
  return out;
}

CheckedResult<SoftwareSpec> find_software(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "software"));
  BUBBLESIM_ASSIGN_OR_RETURN(SoftwareSpec out, read_whole_file(path, read_software));
  out.id = data_file_id(path);
  return out;
}

}  // namespace bubblesim::synth

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/fit/table_readers.hpp"
#include "sim/fit/table_text.hpp"

namespace bubblesim::fit {
namespace {

constexpr std::string_view kTarget = "target", kInputs = "input_shapes", kOutput = "output_shape",
                           kTime = "fw_latency";

using model::KernelKind;
using model::KernelWork;
using model::Precision;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [text](std::string_view ending) { return text.ends_with(ending); });
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

// fp32 throughout: linear layers reach 50 TFLOP/s, within the CUDA cores' 67 and far from TF32.
constexpr Precision kSingle = Precision::kFp32;

std::optional<KernelWork> product_of(std::string_view target, const Shapes& inputs,
                                     const std::vector<double>& out) {
  if (contains_any(target, {"method addmm"}) && inputs.size() >= 3 && inputs[1].size() == 2) {
    return gemm_work("addmm", kSingle, inputs[1][0], inputs[2].back(), inputs[1][1], 1);
  }
  if (contains_any(target, {"method bmm", "method matmul"}) && inputs.size() >= 2 &&
      inputs[0].size() >= 3 && inputs[1].size() >= 3) {
    const double k = inputs[0].back();
    const double m = inputs[0][inputs[0].size() - 2];
    return gemm_work("bmm", kSingle, m, inputs[1].back(), k, elements_of(inputs[0]) / (m * k));
  }
  if (ends_with_any(target, {".query", ".key", ".value", ".dense", "fc1", "fc2", "_proj",
                             "lm_head", "predictions.decoder"}) &&
      !inputs.empty() && inputs[0].size() >= 2 && !out.empty()) {
    const double k = inputs[0].back();
    return gemm_work("linear", kSingle, elements_of(inputs[0]) / k, out.back(), k, 1);
  }
  return std::nullopt;
}

std::optional<KernelWork> stream_of(std::string_view target, const Shapes& inputs,
                                    const std::vector<double>& out) {
  const double elements = elements_of(out);
  double input_elements = 0;
  for (const auto& shape : inputs) input_elements += elements_of(shape);
  const auto make = [&](std::string name, KernelKind kind, double bytes) {
    return stream_work(std::move(name), kind, kSingle, elements, bytes);
  };
  if (contains_any(target, {"function softmax"})) {
    return make("softmax", KernelKind::kSoftmax, 8 * elements);
  }
  if (contains_any(target, {"LayerNorm", "layer_norm", ".ln_"})) {
    return make("layer norm", KernelKind::kNormalisation, 8 * elements);
  }
  if (ends_with_any(target, {"wte", "word_embeddings", "embed_tokens"})) {
    return make("embedding", KernelKind::kEmbedding, 8 * elements);
  }
  if (contains_any(target, {"function add>", "function mul>", "function truediv>",
                            "method tanh", "function gelu>", "activation_fn", "method pow"})) {
    return make("elementwise", KernelKind::kElementwise, 4 * (input_elements + elements));
  }
  return std::nullopt;
}

// Operators of these names launch nothing: their time is what the measurement itself takes.
double idle_ms(const CsvTable& table) {
  std::vector<double> times;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string_view target = table.text(row, kTarget);
    if (target != "size" && target != "dim" && target != "view" && target != "permute") continue;
    const auto ms = table.figure(row, kTime);
    if (ms && *ms > 0) times.push_back(*ms);
  }
  return upper_median(std::move(times));
}

}  // namespace

CheckedResult<void> read_neusight_table(const TableFile& file, KernelMeasurements& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_packed_table(file.path));
  BUBBLESIM_RETURN_IF_ERROR(table.expect(std::array{kTarget, kInputs, kOutput, kTime}));
  const double idle = idle_ms(table);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string_view target = table.text(row, kTarget);
    const Shapes inputs = shapes_of(table.text(row, kInputs));
    const Shapes outputs = shapes_of(table.text(row, kOutput));
    const auto ms = table.figure(row, kTime);
    std::optional<KernelWork> work;
    if (outputs.size() == 1) {
      work = product_of(target, inputs, outputs[0]);
      if (!work) work = stream_of(target, inputs, outputs[0]);
    }
    // The host's share differs from operator to operator: short times say little of the kernel.
    constexpr double kLeast = 7;
    if (ms && *ms < kLeast * idle) work.reset();
    out.add(file, work, ms ? std::optional(*ms - idle) : ms, 1e6);
  }
  return {};
}

}  // namespace bubblesim::fit

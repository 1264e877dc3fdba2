#include <algorithm>
#include <array>
#include <optional>

#include "sim/fit/table_readers.hpp"
#include "sim/fit/table_text.hpp"

namespace bubblesim::fit {
namespace {

using model::KernelKind;
using model::KernelWork;
using model::Precision;

struct Shape {
  double tokens, split, heads, kv_heads, hidden, expanded;
  bool gated;
};

using MaybeWork = std::optional<KernelWork>;

// Of vLLM's kernels only those that training uses too: its RMS norm, rotary embedding and
// SiLU-and-multiply load element by element, at half the bandwidth of PyTorch's.
MaybeWork work_of(std::string_view op, const Shape& s) {
  constexpr Precision kHalf = Precision::kFp16;
  const double head = s.hidden / s.heads;
  const double heads = s.heads / s.split;
  const double kv = std::max(1.0, s.kv_heads / s.split);
  const double inner = s.expanded / s.split;
  if (op == "attn_pre_proj") {
    return gemm_work("qkv gemm", kHalf, s.tokens, (heads + 2 * kv) * head, s.hidden, 1);
  }
  if (op == "attn_post_proj") {
    return gemm_work("attention output gemm", kHalf, s.tokens, s.hidden, heads * head, 1);
  }
  if (op == "mlp_up_proj") {
    return gemm_work("mlp up gemm", kHalf, s.tokens, (s.gated ? 2 : 1) * inner, s.hidden, 1);
  }
  if (op == "mlp_down_proj") {
    return gemm_work("mlp down gemm", kHalf, s.tokens, s.hidden, inner, 1);
  }
  const bool parallel_block = !s.gated;  // phi-2 adds three arrays in two kernels
  if (op == "add" && !parallel_block) {
    const double elements = s.tokens * s.hidden;
    return stream_work("add", KernelKind::kElementwise, kHalf, elements, 3 * 2 * elements);
  }
  if (op == "mlp_act" && !s.gated) {
    const double elements = s.tokens * inner;
    return stream_work("gelu", KernelKind::kElementwise, kHalf, elements, 2 * 2 * elements);
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 6> kOperators = {
    "attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj", "add", "mlp_act"};
constexpr std::array<std::string_view, 7> kShapeColumns = {
    "num_tokens", "num_tensor_parallel_workers", "n_head",        "n_kv_head",
    "n_embd",     "n_expanded_embd",             "use_gated_mlp"};

std::optional<Shape> shape_of(const CsvTable& table, std::size_t row) {
  std::array<double, 6> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = table.figure(row, kShapeColumns[i]);
    if (!value || *value <= 0) return std::nullopt;
    values[i] = *value;
  }
  return Shape{values[0], values[1], values[2], values[3], values[4], values[5],
               table.text(row, kShapeColumns.back()) == "True"};
}

}  // namespace

CheckedResult<void> read_vidur_table(const TableFile& file, KernelMeasurements& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_packed_table(file.path));
  BUBBLESIM_RETURN_IF_ERROR(table.expect(kShapeColumns));
  for (const std::string_view op : kOperators) {
    const std::string time = "time_stats." + std::string(op) + ".median";
    BUBBLESIM_RETURN_IF_ERROR(table.expect(std::array<std::string_view, 1>{time}));
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const auto shape = shape_of(table, row);
      out.add(file, shape ? work_of(op, *shape) : std::nullopt, table.figure(row, time), 1e6);
    }
  }
  return {};
}

}  // namespace bubblesim::fit

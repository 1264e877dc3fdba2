#include <array>
#include <cmath>
#include <optional>

#include "sim/model/fit/table_readers.hpp"
#include "sim/model/fit/table_text.hpp"

namespace bubblesim::model {
namespace {

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

std::optional<Shape> shape_of(const std::vector<std::string>& row,
                              const std::array<std::size_t, 7>& at) {
  std::array<double, 6> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = number_of(row[at[i]]);
    if (!value || *value <= 0) return std::nullopt;
    values[i] = *value;
  }
  return Shape{values[0], values[1], values[2], values[3], values[4], values[5],
               row[at[6]] == "True"};
}

}  // namespace

Result<void> read_vidur_table(const TableFile& file, MeasuredKernels& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_csv(file.path));
  std::array<std::size_t, 7> shape_columns{};
  for (std::size_t i = 0; i < kShapeColumns.size(); ++i) {
    const auto at = table.column(kShapeColumns[i]);
    if (!at) return fail(file.path, {}, "no column " + std::string(kShapeColumns[i]));
    shape_columns[i] = *at;
  }
  for (const std::string_view op : kOperators) {
    const auto at = table.column("time_stats." + std::string(op) + ".median");
    if (!at) return fail(file.path, {}, "no column time_stats." + std::string(op) + ".median");
    for (const auto& row : table.rows) {
      const auto shape = shape_of(row, shape_columns);
      const auto ms = number_of(row[*at]);
      const auto work = shape ? work_of(op, *shape) : std::nullopt;
      if (!work || !ms || *ms <= 0) {
        out.counters.add(kKernelRowsUnread);
        continue;
      }
      out.rows.push_back({*work, Duration{std::llround(*ms * 1e6)}, file.device, file.source,
                          file.role});
    }
  }
  return {};
}

}  // namespace bubblesim::model

#include <cmath>
#include <optional>

#include "sim/model/fit/table_readers.hpp"
#include "sim/model/fit/table_text.hpp"

namespace bubblesim::model {
namespace {

// Llama-3.1-8B: hidden 4096, 32 heads and 8 key/value heads of 128, inner 14336.
std::optional<KernelWork> work_of(const std::string& layer, double tokens) {
  constexpr Precision kType = Precision::kBf16;
  if (layer == "qkv_proj") return gemm_work("qkv gemm", kType, tokens, 6144, 4096, 1);
  if (layer == "o_proj") return gemm_work("attention output gemm", kType, tokens, 4096, 4096, 1);
  if (layer == "gate_up_proj") return gemm_work("mlp up gemm", kType, tokens, 28672, 4096, 1);
  if (layer == "down_proj") return gemm_work("mlp down gemm", kType, tokens, 4096, 14336, 1);
  return std::nullopt;
}

}  // namespace

// Judges tokens that are a multiple of 3, fits the others: there is one model only.
Result<void> read_llmservingsim_table(const TableFile& file, MeasuredKernels& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_csv(file.path));
  const auto layer = table.column("layer");
  const auto tokens = table.column("tokens");
  const auto time = table.column("time_us");
  if (!layer || !tokens || !time) {
    return fail(file.path, {}, "expected the columns layer, tokens and time_us");
  }
  for (const auto& row : table.rows) {
    const auto count = number_of(row[*tokens]);
    const auto us = number_of(row[*time]);
    const auto work = count ? work_of(row[*layer], *count) : std::nullopt;
    if (!work || !us || *us <= 0) {
      out.counters.add(kKernelRowsUnread);
      continue;
    }
    const bool judge = static_cast<long>(*count) % 3 == 0;
    out.rows.push_back({*work, Duration{std::llround(*us * 1e3)}, file.device, file.source,
                        judge ? MeasurementRole::kJudge : MeasurementRole::kFit});
  }
  return {};
}

}  // namespace bubblesim::model

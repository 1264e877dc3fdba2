#include "sim/validate/judges.hpp"

#include <fmt/format.h>

#include <bit>

#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/validate/all_reduce_table.hpp"

namespace bubblesim::validate {
namespace {

double microseconds(Duration span) { return static_cast<double>(to_ns(span)) / 1e3; }

ReportRow judge_row(const AllReducePredictor& node, const AllReduceTable& table,
                    std::size_t index) {
  const AllReduceRow& row = table.rows[index];
  ReportRow out;
  out.table = "all_reduce";
  out.role = is_fit_row(table, index) ? RowRole::kFit : RowRole::kJudge;
  out.label = fmt::format("{} A100, {:.6g} MiB", table.gpus,
                          static_cast<double>(row.bytes.value) / (1 << 20));
  out.unit = "us";
  out.measured = microseconds(row.measured);
  out.simulated = microseconds(node.time(table.gpus, row.bytes));
  out.brief = std::has_single_bit(row.bytes.value);
  return out;
}

}  // namespace

CheckedResult<std::vector<ReportRow>> judge_all_reduces(const std::string& data,
                                                        const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto tables,
                             read_all_reduce_folder(data + "/" + kAllReduceFolder));
  BUBBLESIM_ASSIGN_OR_RETURN(
      const hardware::ClusterSpec cluster,
      hardware::find_cluster_spec(kAllReduceCluster, configs + "/clusters"));
  const AllReducePredictor node(cluster);
  std::vector<ReportRow> out;
  for (const AllReduceTable& table : tables) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) out.push_back(judge_row(node, table, i));
  }
  return out;
}

}  // namespace bubblesim::validate

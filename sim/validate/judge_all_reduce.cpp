#include "sim/validate/judge_all_reduce.hpp"

#include <fmt/format.h>

#include <bit>

#include "sim/hardware/cluster_spec_file.hpp"
#include "sim/network/fit_all_reduce.hpp"
#include "sim/network/topology.hpp"

namespace bubblesim::validate {
namespace {

double microseconds(Duration span) { return static_cast<double>(to_ns(span)) / 1e3; }

ReportRow judge_row(const network::Topology& node, const network::AllReduceTable& table,
                    std::size_t index) {
  const network::AllReduceRow& row = table.rows[index];
  const network::Transfer ring =
      node.plan(network::CollectiveKind::kAllReduce, row.bytes,
                network::strided_group(0, table.gpus), network::Algorithm::kRing);
  ReportRow out;
  out.table = "all_reduce";
  out.role = network::is_fit_row(table, index) ? Role::kFit : Role::kJudge;
  out.label = fmt::format("{} A100, {:.6g} MiB", table.gpus,
                          static_cast<double>(row.bytes.value) / (1 << 20));
  out.unit = "us";
  out.measured = microseconds(row.measured);
  out.simulated = microseconds(node.solo_time(ring));
  out.brief = std::has_single_bit(row.bytes.value);
  return out;
}

}  // namespace

CheckedResult<std::vector<ReportRow>> judge_all_reduces(const std::string& data,
                                                        const std::string& configs) {
  const auto tables = network::read_all_reduce_folder(data + "/" + kAllReduceFolder);
  if (!tables) return tl::make_unexpected(tables.error());
  BUBBLESIM_ASSIGN_OR_RETURN(
      const hardware::ClusterSpec cluster,
      hardware::find_cluster_spec(kAllReduceCluster, configs + "/clusters"));
  const network::Topology node(hardware::with_nodes(cluster, 1));
  std::vector<ReportRow> out;
  for (const network::AllReduceTable& table : *tables) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) out.push_back(judge_row(node, table, i));
  }
  return out;
}

}  // namespace bubblesim::validate

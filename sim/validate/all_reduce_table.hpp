// Measured all-reduce times: tables as nccl-tests and vTrain write them, one row a message size.
//
//   size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)
//   1048576,262144,float,92790,19.78,92150,19.91
//
// Columns are found by name; of columns of one name the first counts (nccl-tests: out of place).
// Times may be in "time(ns)", "time(us)" or "time(ms)".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/network/topology.hpp"

namespace bubblesim::validate {

struct AllReduceRow {
  Bytes bytes;        ///< of the whole array; at least 1
  Duration measured;  ///< at least 1 ns
};

struct AllReduceTable {
  std::string path;
  std::uint32_t gpus = 0;  ///< of one node; at least 2
  std::vector<AllReduceRow> rows;  ///< ascending by bytes, each size once
};

/// Fault: a file that cannot be read, has no size or time column, no row, or a row that is no
/// measurement; with the line.
[[nodiscard]] Result<AllReduceTable> read_all_reduce_table(const std::string& path,
                                                           std::uint32_t gpus);

/// The folder of such tables in the public data.
inline constexpr const char* kAllReduceFolder = "VIA-Research+vTrain/trace/a100";

/// Every file of a folder whose name says for how many GPUs it is ("AR_GPU8_1M_1024M_LUT"),
/// ascending by GPUs. Fault: none there.
[[nodiscard]] Result<std::vector<AllReduceTable>> read_all_reduce_folder(
    const std::string& folder);

/// Whether a row takes part in a fit: every second size of 2, 4 and 8 GPUs.
[[nodiscard]] bool is_fit_row(const AllReduceTable& table, std::size_t row);

/// Ring all-reduces on one node of a cluster.
class AllReducePredictor {
 public:
  explicit AllReducePredictor(const hardware::ClusterSpec& spec)
      : topology_(hardware::with_nodes(spec, 1)) {}

  [[nodiscard]] Duration time(std::uint32_t gpus, Bytes bytes) const;

 private:
  network::Topology topology_;
};

}  // namespace bubblesim::validate

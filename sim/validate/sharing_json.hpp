// Tables of measured sharing, judged and told as JSON. The module `bubblesim` hands it to the judge
// (notebooks/lab/sharing.py), which sums errors up.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::validate {

struct SharingRequest {
  std::string configs;
  std::vector<std::string> tables;   ///< paths
  std::string setting;               ///< of all tables; empty: by each table's form
  std::vector<std::string> systems;  ///< rows of these; empty: of all
  std::string role;                  ///< rows of this one; empty: of all
  std::string device;                ///< rows measured on this one; empty: on any
  std::vector<std::size_t> rows;     ///< of these rows, in order; empty: all
  /// Constants of all devices (sharing_changes()) that are other than their files say; times in
  /// nanoseconds.
  std::map<std::string, double> changes;
  Duration window{};                 ///< of rates over time; 0: none are told
  std::size_t threads = 1;
  std::function<void(const std::string&)> progress;  ///< from any thread, one at a time
};

/// Keys of changes. Besides constants of a device: "burst", the span in which requests of every
/// setting come together.
[[nodiscard]] std::vector<std::string> sharing_changes();

/// {"tables": [...], "rows": [...]}. A table has its setting's path, its device and the columns
/// that nobody reads; a row what SharingRow and JudgedRow say, its device, whether it has requests,
/// and the features that policies of its system demand. Faults: those of add_sharing_table() and
/// judge_sharing(); a change of an unknown constant.
[[nodiscard]] CheckedResult<Json> judge_sharing_tables(const SharingRequest& request,
                                                       const policy::Registry& policies);

/// The tables of a folder that are of a known form, by path.
[[nodiscard]] std::vector<std::string> sharing_tables_in(const std::string& folder);

}  // namespace bubblesim::validate

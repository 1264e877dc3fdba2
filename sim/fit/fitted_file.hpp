// Constants as fits find them, and config files with them in: what is not fitted stays as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::fit {

struct FittedConstant {
  std::string path;  ///< in its file: "collectives/ring_hop/Simple", "gemm/math_share"
  std::string unit;  ///< "us", "GB/s", "KiB"; of bare numbers: what they are ("times", "share")
  double start = 0;
  double value = 0;
  std::string source;  ///< the sentence for the file
};

/// The file as JSON. Fault: it cannot be read, or is no object.
[[nodiscard]] Result<Json> load_config(const std::string& path);

/// Puts a constant and its source in its place. In a list by protocol, entries that are not fitted
/// keep their values, and the source names both.
void put_constant(Json& root, std::string_view path, const Json& value, const std::string& source);

/// The config file at `path` with these constants, to four digits.
[[nodiscard]] Result<std::string> fitted_text(const std::string& path,
                                              const std::vector<FittedConstant>& constants);

}  // namespace bubblesim::fit

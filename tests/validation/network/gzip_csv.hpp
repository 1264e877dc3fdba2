// Compressed CSV files of published measurements, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace bubblesim::validation {

/// Rows by column name; empty if the file cannot be read.
[[nodiscard]] std::vector<std::map<std::string, std::string>> read_gzip_csv(
    const std::string& path);

}  // namespace bubblesim::validation

// Data files by name: "gpt-175b" is a file of a folder, "my/plan.json" is itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim {

/// Whether `name` is a path (it has a "/" or ends in ".json") and not the id of a file.
[[nodiscard]] bool is_file_path(std::string_view name);

/// The id of a data file: its name without folder and ".json".
[[nodiscard]] std::string data_file_id(const std::string& path);

/// Paths of all "*.json" of a folder, in the order of their names. Fault: the folder of `what`
/// ("device", "plan") files cannot be read.
[[nodiscard]] CheckedResult<std::vector<std::string>> list_data_files(const std::string& folder,
                                                                      std::string_view what);

/// The file of `files`, all of `folder`, whose id is `name`. Fault: none, with the nearest id.
[[nodiscard]] CheckedResult<std::string> pick_data_file(std::string_view name,
                                                        const std::vector<std::string>& files,
                                                        const std::string& folder,
                                                        std::string_view what);

}  // namespace bubblesim

// Input files: whole text files, and data files by name. "gpt-175b" is the id of a file in a folder
// of configs, "my/plan.json" a path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim {

/// The text without the mark (EF BB BF) that some editors and spreadsheets put before UTF-8.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Reads to the end, since the kernel's own files (/proc) and pipes have no size; skips a byte
/// order mark. Fault: the file cannot be opened or read, with the system's reason.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

// Paths as URIs.

/// "file:///..." of the absolute path. All characters but ASCII letters, digits and "/._-" are
/// escaped, so no part of the path can look like a query.
[[nodiscard]] std::string file_uri(const std::string& path);

// The order in which people sort files: worker2.json comes before worker10.json.

/// Whether `a` comes before `b`, folder by folder: runs of digits compare as numbers of any length,
/// all other bytes as they are. Names that differ in leading zeros alone compare as text, so that
/// the order is total.
[[nodiscard]] bool natural_less(const std::filesystem::path& a, const std::filesystem::path& b);

/// Whether `name` is a path (it has a "/" or ends in ".json") and not the id of a file.
[[nodiscard]] bool is_file_path(std::string_view name);

/// The id of a data file: its name without folder and ".json".
[[nodiscard]] std::string data_file_id(const std::string& path);

/// Whether the name begins with ".", as do files that macOS puts into archives ("._rank0.json"
/// beside "rank0.json", AppleDouble) and that editors leave behind. Readers of whole folders skip
/// them.
[[nodiscard]] bool is_hidden_file(const std::filesystem::path& path);

/// Paths of all "*.json" of a folder, in the order of their names, hidden ones left out. Fault: the
/// folder of `what` ("device", "plan") files cannot be read.
[[nodiscard]] Result<std::vector<std::string>> list_data_files(const std::string& folder,
                                                               std::string_view what);

/// The path for `name`: `name` itself if it is a path, else the path of the file in `folder` with
/// this id. Fault: no such file, with the nearest id.
[[nodiscard]] Result<std::string> find_data_file(std::string_view name, const std::string& folder,
                                                 std::string_view what);

/// Calls `read` with the path of each "*.json" of a folder, in the order of their names. Returns
/// the results, or the faults of all files at once.
template <class Read>
auto read_data_folder(const std::string& folder, std::string_view what, Read read)
    -> CheckedResult<
        std::vector<typename std::invoke_result_t<Read, const std::string&>::value_type>> {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<std::string> paths, list_data_files(folder, what));
  std::vector<typename std::invoke_result_t<Read, const std::string&>::value_type> files;
  Errors errors;
  for (const std::string& path : paths) {
    if (auto file = read(path)) {
      files.push_back(std::move(*file));
    } else {
      errors.add(file.error());
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return files;
}

}  // namespace bubblesim

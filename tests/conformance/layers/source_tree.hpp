// The project's C++ files as text, for the rules that hold the tree to its design.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace bubblesim::layers {

/// `#include "path"` (quoted) or `#include <path>`.
struct Include {
  std::string path;
  std::size_t line = 0;
  bool quoted = true;
};

/// One file. Lines count from 1; `code` has comments and literals blanked out.
struct SourceFile {
  std::string path;  ///< from the root of the repository
  std::vector<std::string> lines;
  std::vector<std::string> code;
  std::vector<Include> includes;

  [[nodiscard]] bool is_header() const { return path.ends_with(".hpp") || path.ends_with(".cuh"); }
};

/// Cuts a file's text into lines, code and includes.
[[nodiscard]] SourceFile parse_source(std::string path, const std::string& text);

/// Blanks comments and the contents of string and character literals, keeping line breaks.
[[nodiscard]] std::string blank_comments_and_literals(const std::string& text);

/// All C++ and CUDA files below the folders named, in order of path.
[[nodiscard]] std::vector<SourceFile> read_tree(const std::filesystem::path& root,
                                                const std::vector<std::string>& folders);

}  // namespace bubblesim::layers

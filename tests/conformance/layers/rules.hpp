// The rules of sim/README.md and CONTRIBUTING.md that can be checked on the source text. Each check
// returns one sentence a breach, "path:line: what was found, what is allowed".
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::layers {

// The project's C++ files as text, for the rules that hold the tree to its design.

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

using Breaches = std::vector<std::string>;

/// A room and the rooms whose headers it may include, besides its own. A room in `may_include`
/// allows the rooms inside it, too, unless this room is one of them.
struct Room {
  std::string path;
  std::string cell;  ///< the table's last column, as written
  std::set<std::string> may_include;
};
using Rooms = std::vector<Room>;

/// The table of rooms in sim/README.md: rows of three cells, of which the first is a path in
/// `code`.
[[nodiscard]] Rooms read_rooms(const std::string& readme);

/// The innermost room that a path lies in; null for a path in none.
[[nodiscard]] const Room* room_of(const Rooms& rooms, const std::string& path);

[[nodiscard]] bool may_include(const Room& room, const Room& target);

/// Rooms include only the rooms that the table allows.
[[nodiscard]] Breaches check_layers(const SourceFile& file, const Rooms& rooms);

/// Quoted includes are full paths from the root, to files that exist (`known`).
[[nodiscard]] Breaches check_full_paths(const SourceFile& file, const std::set<std::string>& known);

/// A header starts with what it is for, and is guarded.
[[nodiscard]] Breaches check_header_form(const SourceFile& file);

/// At most 100 characters a line.
[[nodiscard]] Breaches check_line_length(const SourceFile& file);

/// The JSON library is included through sim/base/json.hpp only, and not in the header of a room,
/// since all its includers would have to parse it. A test's header has few includers, so it may.
[[nodiscard]] Breaches check_json(const SourceFile& file);

/// Libraries neither print nor exit nor read the environment; programs (sim/app, *main.cpp) may.
[[nodiscard]] Breaches check_quiet(const SourceFile& file);

// Which standard header declares which name. A project header includes the standard headers of the
// names that it uses, itself or through another project header. A compiler cannot check this, since
// standard headers include each other as their library likes.

/// By name: the headers that declare std::NAME, as cppreference lists them. A file that uses the
/// name must include one of them. Names that are missing here are not checked.
[[nodiscard]] const std::multimap<std::string_view, std::string_view>& standard_names();

/// Project headers outside the tests that use a name of std without any of its headers. `tree` must
/// hold every project file that they include.
[[nodiscard]] Breaches check_standard_includes(const std::vector<SourceFile>& tree);

}  // namespace bubblesim::layers

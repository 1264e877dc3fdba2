// The rules of sim/README.md and CONTRIBUTING.md that a reader of the text alone can check. Each
// returns one sentence a breach, "path:line: what was found, what is allowed"; none is good.
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

/// A room and the rooms whose headers it may include, besides its own. A name in `may_include`
/// stands for the rooms inside it, too, unless this room is one of them.
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

/// The JSON library comes in through sim/base/json.hpp, and never into a room's header, whose
/// includers would all pay for it. A test's header has two or three of them, and may.
[[nodiscard]] Breaches check_json(const SourceFile& file);

/// Libraries neither print nor exit nor read the environment; programs (sim/app, *main.cpp) may.
[[nodiscard]] Breaches check_quiet(const SourceFile& file);

// Which standard header declares what: a header of the project includes those of the names that it
// uses, itself or through a project's header that it includes. A compiler cannot tell, since one
// standard header includes another as it likes.

/// The headers of which one must be included by whoever uses `std::` and the name; cppreference's
/// page of the name says them. A name that is missing here is not held to anything.
[[nodiscard]] const std::multimap<std::string_view, std::string_view>& standard_names();

/// Headers outside the tests that use a name of std without any of its headers. `tree` holds every
/// file of the project that they include.
[[nodiscard]] Breaches check_standard_includes(const std::vector<SourceFile>& tree);

}  // namespace bubblesim::layers

// The rules of sim/README.md and CONTRIBUTING.md that a reader of the text alone can check. Each
// returns one sentence a breach, "path:line: what was found, what is allowed"; none is good.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/conformance/layers/source_tree.hpp"

namespace bubblesim::layers {

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

/// No arrow that the table does not have.
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

}  // namespace bubblesim::layers

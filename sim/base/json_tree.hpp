// Inside of json_reader: the parsed values, and the parser that fills them. Only json_*.cpp of
// this room include this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::json_detail {

struct Node;
struct Member;

/// Members in file order, and their indices in name order (equal names in file order).
struct Object {
  std::vector<Member> members;
  std::vector<std::uint32_t> by_name;

  /// The first member of that name, or null. O(log n).
  [[nodiscard]] const Node* find(std::string_view name) const;
};

using List = std::vector<Node>;

struct Node {
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List,
               Object>
      value;
};

struct Member {
  std::string name;
  Node node;
};

struct Tree {
  std::string file;
  Node root;
  Errors duplicate_keys;
  ReadRecorder* recorder = nullptr;  // told of every read, if there
};

[[nodiscard]] JsonKind kind_of(const Node& node);

/// What a message calls a value: `the number 5`, `the text "abc"`, `a list of 3`.
[[nodiscard]] std::string describe(const Node& node);

/// Compact JSON.
[[nodiscard]] std::string to_json_text(const Node& node);

/// A JSON pointer's part for a key: "~" and "/" escaped, after a "/".
[[nodiscard]] std::string pointer_part(std::string_view key);

/// A list grows by no more than this; afterwards one line says that there are more.
inline constexpr std::size_t kMaxFaults = 100;
void add_fault(Errors& errors, const std::string& file, std::string_view place,
               std::string message);

/// Syntax, nesting, size. Duplicate keys go to the tree.
[[nodiscard]] Result<Tree> parse_tree(std::string_view text, std::string file);

}  // namespace bubblesim::json_detail

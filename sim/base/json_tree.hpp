// json_reader's parsed values, and the parser that fills them. Only json_*.cpp of this room include
// this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
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
  ReadRecorder* recorder = nullptr;  // told of every read; null: reads are not recorded
};

[[nodiscard]] JsonKind kind_of(const Node& node);

/// A value as messages call it: `the number 5`, `the text "abc"`, `a list of 3`.
[[nodiscard]] std::string describe(const Node& node);

/// Compact JSON.
[[nodiscard]] std::string to_json_text(const Node& node);

/// A JSON pointer's part for a key: "~" and "/" escaped, after a "/".
[[nodiscard]] std::string pointer_part(std::string_view key);

/// The most faults that a list holds; one more line says that there are others.
inline constexpr std::size_t kMaxFaults = 100;
void add_fault(Errors& errors, const std::string& file, std::string_view place,
               std::string message);

/// Parses a file's text. Faults: syntax, nesting, size. Duplicate keys go to the tree.
[[nodiscard]] Result<Tree> parse_tree(std::string_view text, std::string file);

// Converts one JSON value to a typed value, or says why it cannot. Only json_*.cpp of this room
// include this file.

/// A value or, as the error, the message about it.
template <class T>
using Parsed = tl::expected<T, std::string>;

/// "found the number 5; expected text".
[[nodiscard]] tl::unexpected<std::string> mismatch(const Node& node, const std::string& expected);

[[nodiscard]] Parsed<std::string> to_text(const Node& node);
[[nodiscard]] Parsed<bool> to_flag(const Node& node);
/// Integers are written without point and exponent; quantities are texts with a unit.
[[nodiscard]] Parsed<std::int64_t> to_ranged(const Node& node, const Range<std::int64_t>& range);
[[nodiscard]] Parsed<std::uint64_t> to_ranged(const Node& node, const Range<std::uint64_t>& range);
[[nodiscard]] Parsed<double> to_ranged(const Node& node, const Range<double>& range);
[[nodiscard]] Parsed<Duration> to_ranged(const Node& node, const Range<Duration>& range);
[[nodiscard]] Parsed<Bytes> to_ranged(const Node& node, const Range<Bytes>& range);
[[nodiscard]] Parsed<BytesPerSecond> to_ranged(const Node& node,
                                               const Range<BytesPerSecond>& range);

// The state that one ObjectReader and its copies share. Only json_*.cpp of this room include this
// file.

/// Allowed at the root of every file.
inline constexpr std::string_view kSchemaKey = "$schema";

struct ObjectState {
  const Tree* tree = nullptr;
  Errors* errors = nullptr;
  const Object* object = nullptr;  // null: the object is absent, and reads of it give no faults
  std::unique_ptr<Object> spelled_out;  // the object that this text stands for
  std::string pointer;
  std::set<std::string, std::less<>> declared;
  // Readers of children by key, so that reading a key twice gives the same declarations.
  std::map<std::string, std::vector<std::shared_ptr<ObjectState>>, std::less<>> children;
  bool finished = false;
};

}  // namespace bubblesim::json_detail

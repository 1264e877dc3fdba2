#include "tests/conformance/layers/rules.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <regex>
#include <sstream>
#include <utility>

namespace bubblesim::layers {
namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Include> find_includes(const std::vector<std::string>& lines) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
  std::vector<Include> includes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (lines[i].find("include") == std::string::npos) continue;
    if (std::regex_search(lines[i], match, pattern))
      includes.push_back({match[2], i + 1, match[1] == "\""});
  }
  return includes;
}

/// Walks a text once; `kept` is the text with everything but code blanked.
class Blanker {
 public:
  explicit Blanker(const std::string& text) : text_(text), kept_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) blank_until("\n", 0);
      else if (starts("/*")) blank_until("*/", 2);
      else if (starts("R\"")) raw_string();
      else if (text_[at_] == '"' || (text_[at_] == '\'' && !after_digit())) literal(text_[at_]);
      else ++at_;
    }
    return kept_;
  }

 private:
  [[nodiscard]] bool starts(const char* what) const { return text_.compare(at_, 2, what) == 0; }
  /// 1'000'000 holds no character literal.
  [[nodiscard]] bool after_digit() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }
  void blank_to(std::size_t end) {
    for (; at_ < end; ++at_)
      if (kept_[at_] != '\n') kept_[at_] = ' ';
  }
  void blank_until(const std::string& what, std::size_t extra) {
    const std::size_t found = text_.find(what, at_ + 2);
    blank_to(found == std::string::npos ? text_.size() : found + extra);
  }
  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos) return blank_to(text_.size());
    const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    const std::size_t found = text_.find(close, open);
    blank_to(found == std::string::npos ? text_.size() : found + close.size());
  }
  void literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    blank_to(std::min(end + 1, text_.size()));
  }

  const std::string& text_;
  std::string kept_;
  std::size_t at_ = 0;
};

bool is_source(const std::filesystem::path& path) {
  const std::string end = path.extension().string();
  return end == ".hpp" || end == ".cpp" || end == ".cu" || end == ".cuh";
}

}  // namespace

std::string blank_comments_and_literals(const std::string& text) { return Blanker(text).run(); }

SourceFile parse_source(std::string path, const std::string& text) {
  SourceFile file;
  file.path = std::move(path);
  file.lines = split_lines(text);
  file.code = split_lines(blank_comments_and_literals(text));
  file.includes = find_includes(file.lines);
  return file;
}

std::vector<SourceFile> read_tree(const std::filesystem::path& root,
                                  const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file() && is_source(entry.path())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SourceFile> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    files.push_back(parse_source(path.lexically_relative(root).generic_string(), text));
  }
  return files;
}

namespace {

constexpr std::size_t kMaxColumns = 100;

std::string at(const SourceFile& file, std::size_t line, const std::string& what) {
  return file.path + ":" + std::to_string(line) + ": " + what;
}

std::string list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no other room" : text;
}

bool within(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

/// Characters of UTF-8: bytes that do not continue one.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

/// The rooms that a cell of the table names: paths, whose "sim/" may be left out.
std::set<std::string> named_rooms(const Rooms& rooms, const std::string& cell) {
  std::set<std::string> names;
  if (cell == "-") return names;
  for (const Room& room : rooms)
    if (cell == "everything") names.insert(room.path);
  if (cell == "everything") return names;
  std::istringstream words(cell);
  for (std::string name; std::getline(words >> std::ws, name, ',');) {
    const auto is_known = [&](const std::string& path) {
      return std::any_of(rooms.begin(), rooms.end(), [&](const Room& room) {
        return room.path == path || within(room.path, path);
      });
    };
    names.insert(is_known("sim/" + name) ? "sim/" + name : name);
  }
  return names;
}

/// Whether a line can hold a loud word at all; std::regex is too slow to ask every line.
bool may_be_loud(const std::string& line) {
  for (const char* part : {"print", "put", "exit", "getenv", "std::c"})
    if (line.find(part) != std::string::npos) return true;
  return false;
}

bool is_program(const std::string& path) {
  return within(path, "sim/app") || path.ends_with("main.cpp") || path.ends_with("main.cu");
}

}  // namespace

Rooms read_rooms(const std::string& readme) {
  static const std::regex row(R"(\| `([^`]+)` \|[^|]*\| ([^|]+) \|)");
  Rooms rooms;
  std::istringstream lines(readme);
  std::smatch cells;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, cells, row)) rooms.push_back({cells[1], cells[2], {}});
  for (Room& room : rooms) room.may_include = named_rooms(rooms, room.cell);
  return rooms;
}

const Room* room_of(const Rooms& rooms, const std::string& path) {
  const Room* innermost = nullptr;
  for (const Room& room : rooms)
    if (within(path, room.path) &&
        (innermost == nullptr || room.path.size() > innermost->path.size()))
      innermost = &room;
  return innermost;
}

bool may_include(const Room& room, const Room& target) {
  const auto allows = [&](const std::string& name) {
    return target.path == name || (within(target.path, name) && !within(room.path, name));
  };
  return target.path == room.path ||
         std::any_of(room.may_include.begin(), room.may_include.end(), allows);
}

Breaches check_layers(const SourceFile& file, const Rooms& rooms) {
  const Room* room = room_of(rooms, file.path);
  if (room == nullptr) return {};
  Breaches breaches;
  for (const Include& include : file.includes) {
    const Room* target = include.quoted ? room_of(rooms, include.path) : nullptr;
    if (within(include.path, "tests"))
      breaches.push_back(at(file, include.line, "includes " + include.path + " of the tests"));
    if (target == nullptr || may_include(*room, *target)) continue;
    breaches.push_back(at(file, include.line, "includes " + include.path + "; " + room->path +
                                                  " may include " + list(room->may_include)));
  }
  return breaches;
}

Breaches check_full_paths(const SourceFile& file, const std::set<std::string>& known) {
  Breaches breaches;
  for (const Include& include : file.includes)
    if (include.quoted && !known.contains(include.path))
      breaches.push_back(at(file, include.line, "includes \"" + include.path +
                                                    "\", which is no path from the root"));
  return breaches;
}

Breaches check_header_form(const SourceFile& file) {
  if (!file.is_header()) return {};
  Breaches breaches;
  if (file.lines.empty() || !file.lines.front().starts_with("//"))
    breaches.push_back(at(file, 1, "does not start with a comment that says what it is for"));
  if (std::find(file.lines.begin(), file.lines.end(), "#pragma once") == file.lines.end())
    breaches.push_back(at(file, 1, "has no #pragma once"));
  return breaches;
}

Breaches check_line_length(const SourceFile& file) {
  Breaches breaches;
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    if (columns(file.lines[i]) > kMaxColumns)
      breaches.push_back(at(file, i + 1, "has " + std::to_string(columns(file.lines[i])) +
                                             " columns; " + std::to_string(kMaxColumns) +
                                             " are allowed"));
  return breaches;
}

Breaches check_json(const SourceFile& file) {
  Breaches breaches;
  for (const Include& include : file.includes) {
    const bool wraps = file.path == "sim/base/json.hpp" || file.path == "sim/base/json_fwd.hpp";
    if (include.path.starts_with("nlohmann/") && !wraps)
      breaches.push_back(at(file, include.line, "includes " + include.path +
                                                    "; only sim/base/json.hpp may"));
    if (include.path == "sim/base/json.hpp" && file.is_header() && !within(file.path, "tests"))
      breaches.push_back(at(file, include.line, "a header includes sim/base/json.hpp"));
  }
  return breaches;
}

Breaches check_quiet(const SourceFile& file) {
  if (within(file.path, "tests") || is_program(file.path)) return {};
  if (file.path == "sim/base/check.cpp") return {};
  static const std::regex loud(
      R"(\b(printf|fprintf|puts|fputs|putchar|exit|_exit|quick_exit|getenv)\s*\()"
      R"(|\bstd::(cout|cerr|clog)\b)");
  Breaches breaches;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    std::smatch match;
    if (!may_be_loud(file.code[i])) continue;
    if (!std::regex_search(file.code[i], match, loud)) continue;
    if (match[1] == "getenv" && within(file.path, "capture")) continue;
    breaches.push_back(at(file, i + 1, "uses " + match.str() +
                                           "; libraries neither print, exit nor read the "
                                           "environment"));
  }
  return breaches;
}

namespace {

using Paths = std::set<std::string>;
using FilesByPath = std::map<std::string, const SourceFile*>;

/// One header and names that it declares.
struct Declares {
  std::string_view header;
  std::vector<std::string_view> names;
};

const std::initializer_list<Declares> kStandard = {
    {"algorithm", {"all_of", "any_of", "clamp", "find", "find_if", "is_sorted", "lower_bound",
                   "max", "min", "sort", "stable_sort", "upper_bound"}},
    {"any", {"any", "any_cast"}},
    {"array", {"array"}},
    {"atomic", {"atomic", "atomic_flag", "memory_order_acquire", "memory_order_relaxed",
                "memory_order_release"}},
    {"chrono", {"chrono"}},
    {"cmath", {"ceil", "floor", "isfinite", "isnan", "sqrt"}},
    {"condition_variable", {"condition_variable", "condition_variable_any"}},
    {"cstddef", {"byte", "nullptr_t", "ptrdiff_t"}},
    {"cstdint", {"int32_t", "int64_t", "int8_t", "intptr_t", "uint16_t", "uint32_t", "uint64_t",
                 "uint8_t", "uintptr_t"}},
    {"deque", {"deque"}},
    {"exception", {"current_exception", "exception_ptr", "rethrow_exception"}},
    {"filesystem", {"filesystem"}},
    {"fstream", {"ifstream", "ofstream"}},
    {"functional", {"function", "hash", "less"}},
    {"initializer_list", {"initializer_list"}},
    {"limits", {"numeric_limits"}},
    {"map", {"map", "multimap", "less"}},
    {"memory", {"make_shared", "make_unique", "shared_ptr", "unique_ptr", "weak_ptr"}},
    {"mutex", {"lock_guard", "mutex", "once_flag", "scoped_lock", "unique_lock"}},
    {"optional", {"nullopt", "optional"}},
    {"queue", {"priority_queue", "queue"}},
    {"ranges", {"ranges"}},
    {"set", {"multiset", "set", "less"}},
    {"span", {"span"}},
    {"sstream", {"istringstream", "ostringstream"}},
    {"string", {"getline", "string", "to_string"}},
    {"string_view", {"string_view"}},
    {"string", {"string_view"}},
    {"thread", {"jthread", "stop_token", "thread"}},
    {"stop_token", {"stop_source", "stop_token"}},
    {"tuple", {"tie", "tuple"}},
    {"type_traits", {"conditional_t", "decay_t", "is_enum_v", "is_integral_v", "is_same_v",
                     "is_signed_v", "is_unsigned_v", "is_void_v", "type_identity_t"}},
    {"unordered_map", {"unordered_map"}},
    {"unordered_set", {"unordered_set"}},
    {"utility", {"exchange", "forward", "move", "pair", "swap"}},
    {"map", {"pair"}},
    {"variant", {"monostate", "variant", "visit"}},
    {"vector", {"vector"}},
};

void add_includes(const FilesByPath& files, const SourceFile& file, Paths& reached) {
  for (const Include& include : file.includes) {
    if (!reached.insert(include.path).second) continue;
    if (const auto found = files.find(include.path); found != files.end())
      add_includes(files, *found->second, reached);
  }
}

/// The names of std that a file uses, each with the line of its first use.
std::map<std::string, std::size_t> used_names(const SourceFile& file) {
  static constexpr std::string_view kStd = "std::";
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  std::map<std::string, std::size_t> uses;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    for (auto at = line.find(kStd); at != std::string::npos; at = line.find(kStd, at)) {
      at += kStd.size();
      uses.emplace(line.substr(at, line.find_first_not_of(kLetters, at) - at), i + 1);
    }
  }
  return uses;
}

Breaches missing_includes(const FilesByPath& files, const SourceFile& header) {
  Paths reached;
  add_includes(files, header, reached);
  Breaches breaches;
  for (const auto& [name, line] : used_names(header)) {
    const auto [first, last] = standard_names().equal_range(name);
    if (first == last || std::any_of(first, last, [&](const auto& declared) {
          return reached.contains(std::string(declared.second));
        }))
      continue;
    breaches.push_back(header.path + ":" + std::to_string(line) + ": uses std::" + name +
                       " without <" + std::string(first->second) + ">");
  }
  return breaches;
}

}  // namespace

const std::multimap<std::string_view, std::string_view>& standard_names() {
  static const std::multimap<std::string_view, std::string_view> names = [] {
    std::multimap<std::string_view, std::string_view> table;
    for (const Declares& entry : kStandard)
      for (const std::string_view name : entry.names) table.emplace(name, entry.header);
    return table;
  }();
  return names;
}

Breaches check_standard_includes(const std::vector<SourceFile>& tree) {
  FilesByPath files;
  for (const SourceFile& file : tree) files.emplace(file.path, &file);
  Breaches breaches;
  for (const SourceFile& file : tree) {
    if (!file.is_header() || file.path.starts_with("tests/")) continue;
    for (std::string& breach : missing_includes(files, file)) breaches.push_back(std::move(breach));
  }
  return breaches;
}

}  // namespace bubblesim::layers

#include "tests/conformance/layers/standard_headers.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace bubblesim::layers {
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

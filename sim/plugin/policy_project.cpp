#include "sim/plugin/policy_project.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/nearest.hpp"
#include "sim/plugin/load_policies.hpp"

namespace bubblesim::plugin {

/// The files of template/, as they were when this was built (CMake writes the definitions).
namespace texts {
std::string_view cmakelists_txt();
std::string_view policy_cpp();
std::string_view policy_test_cpp();
std::string_view readme_md();
}  // namespace texts

namespace {

/// Targets of CMake's own, and the words of C++ that are names of policies in form.
constexpr auto kReserved = std::to_array<std::string_view>({
    "alignas", "alignof", "all", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool",
    "break", "bubblesim", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class",
    "clean", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast",
    "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float",
    "for", "friend", "goto", "help", "if", "inline", "install", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
    "policy", "private", "protected", "public", "register", "reinterpret_cast", "requires",
    "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "std",
    "struct", "switch", "template", "test", "this", "thread_local", "throw", "true", "try",
    "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual"});
static_assert(std::ranges::is_sorted(kReserved));

/// "token_gate" as "TokenGate".
std::string class_name(std::string_view name) {
  std::string out;
  bool upper = true;
  for (const char letter : name) {
    if (letter != '_') out += upper ? static_cast<char>(std::toupper(letter)) : letter;
    upper = letter == '_';
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view name) {
  const std::string type = class_name(name);
  std::string out;
  while (true) {
    const std::size_t at = std::min(text.find("@NAME@"), text.find("@CLASS@"));
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    const bool is_class = text[at + 1] == 'C';
    out += is_class ? std::string_view(type) : name;
    text.remove_prefix(at + (is_class ? 7 : 6));
  }
}

}  // namespace

Result<std::vector<ProjectFile>> policy_project(std::string_view name) {
  if (!is_policy_name(name)) {
    return fail("found " + quote_found(name) +
                ", expected a name in snake_case: a letter a to z, then letters, digits and "
                "underscores, at most 64");
  }
  if (std::ranges::binary_search(kReserved, name)) {
    return fail("found " + quote_found(name) + ", which is a word of C++ or of CMake");
  }
  const std::string prefix(name);
  return std::vector<ProjectFile>{{"CMakeLists.txt", replaced(texts::cmakelists_txt(), name)},
                                  {prefix + ".cpp", replaced(texts::policy_cpp(), name)},
                                  {prefix + "_test.cpp", replaced(texts::policy_test_cpp(), name)},
                                  {"README.md", replaced(texts::readme_md(), name)}};
}

}  // namespace bubblesim::plugin

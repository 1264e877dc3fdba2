#include "sim/report/page_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"

namespace bubblesim::report {

std::string script_json(const Json& json) {
  const std::string text = compact_text(json);
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string filled_page(
    std::string_view page,
    std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  std::string result;
  while (!page.empty()) {
    const std::size_t from = page.find("{{");
    result += page.substr(0, from);
    if (from == std::string_view::npos) break;
    const std::size_t to = page.find("}}", from);
    const std::string_view name = page.substr(from + 2, to - from - 2);
    for (const auto& [key, text] : texts) {
      if (key == name) result += text;
    }
    page.remove_prefix(to + 2);
  }
  return result;
}

}  // namespace bubblesim::report

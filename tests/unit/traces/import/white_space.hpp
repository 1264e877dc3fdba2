// The same JSON text with other white space, which must not change the result of readers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::traces::sample {

/// White space that an exporter puts between the tokens of JSON.
struct Layout {
  std::string_view name;
  std::string_view line_end;   ///< after brackets and commas
  std::string_view indent;     ///< once a level, after line_end
  std::string_view after_key;  ///< behind the colon
  std::string_view before_colon;
};

inline const std::vector<Layout>& layouts() {
  static const std::vector<Layout> kLayouts{
      {"compact", "", "", "", ""},
      {"json.dump(indent=2)", "\n", "  ", " ", ""},
      {"tabs and CRLF", "\r\n", "\t", "\t", "\t"},
      {"a blank line and blanks before colons", "\n\r\n ", "", "\n", " "},
  };
  return kLayouts;
}

/// Where the string that begins at `at` ends: behind its closing quote.
inline std::size_t string_end(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

/// `json` with the white space between its tokens replaced; strings stay as they are.
inline std::string laid_out(std::string_view json, const Layout& layout) {
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] {
    out += layout.line_end;
    for (std::size_t i = 0; i < depth; ++i) out += layout.indent;
  };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      const std::size_t end = string_end(json, i);
      out += json.substr(i, end - i);
      i = end - 1;
    } else if (c == '{' || c == '[') {
      out += c;
      ++depth;
      new_line();
    } else if (c == '}' || c == ']') {
      --depth;
      new_line();
      out += c;
    } else if (c == ',') {
      out += c;
      new_line();
    } else if (c == ':') {
      out += layout.before_colon;
      out += c;
      out += layout.after_key;
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      out += c;
    }
  }
  return out;
}

}  // namespace bubblesim::traces::sample

#include "sim/run/report/report_page.hpp"

#include <bubblesim_report_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake
#include <utility>

namespace bubblesim::run {
namespace {

/// Puts a text where the template names it; the text itself is not looked at.
std::string filled(std::string_view page,
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

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string report_page(const ReportData& data) {
  return filled(page::kHtml, {{"title", html_text(data.title)},
                              {"style_hash", page::kStyleHash},
                              {"style", page::kStyle},
                              {"script_hash", page::kScriptHash},
                              {"script", page::kScript},
                              {"data", report_json(data)}});
}

}  // namespace bubblesim::run

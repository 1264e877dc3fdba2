#include "tests/conformance/layers/source_tree.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

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

}  // namespace bubblesim::layers

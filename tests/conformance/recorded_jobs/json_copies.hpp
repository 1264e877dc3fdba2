// Copies of a profiler's JSON file with the same content: with other white space, with other
// compression, with the events in another order. The text of every value stays the same.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/traces/import/gzip_samples.hpp"

namespace bubblesim::testing {

enum class Layout : std::uint8_t {
  kCompact,       ///< no white space between tokens
  kIndented,      ///< Python's json.dump(indent=2)
  kTabsAndCrLf,   ///< a tab a level, lines end in CR LF, blanks around each colon
};

inline bool is_blank(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

// Where the string that begins at `at` ends: behind its closing quote.
inline std::size_t string_end(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

inline std::size_t next_token(std::string_view json, std::size_t at) {
  while (at < json.size() && is_blank(json[at])) ++at;
  return at;
}

/// Writes tokens with the white space of one layout.
class Writer {
 public:
  explicit Writer(Layout layout) : layout_(layout) {}

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    new_line();
  }
  void close(char bracket) {
    --depth_;
    new_line();
    out_ += bracket;
  }
  void comma() {
    out_ += ',';
    new_line();
  }
  void colon() {
    constexpr std::array<const char*, 3> kColons{":", ": ", " : "};
    out_ += kColons[static_cast<std::size_t>(layout_)];
  }
  void value(std::string_view text) { out_ += text; }

  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  void new_line() {
    if (layout_ == Layout::kIndented) out_.append("\n").append(2 * depth_, ' ');
    if (layout_ == Layout::kTabsAndCrLf) out_.append("\r\n").append(depth_, '\t');
  }

  Layout layout_;
  std::size_t depth_ = 0;
  std::string out_;
};

/// The elements of the array that begins at `open`, and where it ends.
struct Elements {
  std::vector<std::string_view> texts;
  std::size_t end = 0;  ///< of its closing bracket
};

inline Elements elements_of(std::string_view json, std::size_t open) {
  Elements elements;
  std::size_t depth = 0;
  std::size_t begin = next_token(json, open + 1);
  const auto add = [&](std::size_t end) {
    while (end > begin && is_blank(json[end - 1])) --end;
    if (end > begin) elements.texts.push_back(json.substr(begin, end - begin));
  };
  for (std::size_t at = begin; at < json.size(); ++at) {
    const char letter = json[at];
    if (letter == '"') {
      at = string_end(json, at) - 1;
    } else if (letter == '{' || letter == '[') {
      ++depth;
    } else if (letter == ',' && depth == 0) {
      add(at);
      begin = next_token(json, at + 1);
    } else if (letter == '}' || letter == ']') {
      if (depth == 0) {
        add(at);
        elements.end = at;
        return elements;
      }
      --depth;
    }
  }
  elements.end = json.size();
  return elements;
}

// Where the list of events begins.
inline std::size_t events_begin(std::string_view json) {
  const std::size_t key = json.find("\"traceEvents\"");
  return json.find('[', key == std::string_view::npos ? 0 : key);
}

/// The same tokens with other white space between them.
inline std::string laid_out(std::string_view json, Layout layout) {
  Writer writer(layout);
  for (std::size_t at = next_token(json, 0); at < json.size(); at = next_token(json, at)) {
    const char letter = json[at];
    if (letter == '{' || letter == '[') {
      writer.open(letter);
    } else if (letter == '}' || letter == ']') {
      writer.close(letter);
    } else if (letter == ',') {
      writer.comma();
    } else if (letter == ':') {
      writer.colon();
    } else {
      std::size_t end = letter == '"' ? string_end(json, at) : at;
      while (end < json.size() && letter != '"' && !is_blank(json[end]) &&
             std::string_view(",:{}[]").find(json[end]) == std::string_view::npos) {
        ++end;
      }
      writer.value(json.substr(at, end - at));
      at = end;
      continue;
    }
    ++at;
  }
  return std::move(writer).take();
}

/// The same file with the elements of "traceEvents", or of the bare array that the file consists
/// of, in an order drawn from `seed`.
inline std::string shuffled_events(std::string_view json, std::uint64_t seed) {
  const std::size_t open = events_begin(json);
  Elements elements = elements_of(json, open);
  std::mt19937_64 random(seed);
  // std::shuffle's order is not the same in every library.
  for (std::size_t i = elements.texts.size(); i > 1; --i) {
    std::swap(elements.texts[i - 1], elements.texts[random() % i]);
  }
  std::string out(json.substr(0, open + 1));
  for (std::size_t i = 0; i < elements.texts.size(); ++i) {
    if (i > 0) out += ",\n";
    out += elements.texts[i];
  }
  return out.append(json.substr(elements.end));
}

/// One gzip member.
inline std::string gzipped(std::string_view text, int level) {
  return traces::sample::gzip(std::string(text), nullptr, level);
}

/// The bytes of a file, unpacked if it is gzip. Empty: it cannot be read.
inline std::string text_of(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return text;
  std::array<char, 1 << 16> block{};
  for (int got = 0; (got = gzread(file, block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace bubblesim::testing

// Copies of a profiler's JSON file with the same content: with other compression, with the events in
// another order. The text of every value stays the same. Other white space: white_space.hpp.
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
#include "tests/unit/traces/import/white_space.hpp"

namespace bubblesim::testing {

inline bool is_blank(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

inline std::size_t next_token(std::string_view json, std::size_t at) {
  while (at < json.size() && is_blank(json[at])) ++at;
  return at;
}

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
      at = traces::sample::string_end(json, at) - 1;
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

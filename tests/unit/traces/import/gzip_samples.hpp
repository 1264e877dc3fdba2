// Gzip members for tests, made by zlib.
#pragma once

#include <string>
#include <zlib.h>

namespace bubblesim::traces::sample {

/// One member of `text`; `header`: optional fields of its header.
inline std::string gzip(std::string text, gz_header* header = nullptr, int level = 6) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  if (header != nullptr) deflateSetHeader(&stream, header);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A member whose header has every optional field and a checksum.
inline std::string gzip_with_all_fields(const std::string& text) {
  std::string extra(300, 'e');
  std::string name = "trace.json";
  std::string comment = "what was seen";
  gz_header header{};
  header.extra = reinterpret_cast<Bytef*>(extra.data());
  header.extra_len = static_cast<uInt>(extra.size());
  header.name = reinterpret_cast<Bytef*>(name.data());
  header.comment = reinterpret_cast<Bytef*>(comment.data());
  header.hcrc = 1;
  return gzip(text, &header);
}

/// Text that compresses as traces do: varying numbers in text that repeats.
inline std::string like_a_trace(std::size_t bytes) {
  std::string text;
  unsigned number = 1;
  while (text.size() < bytes) {
    number = number * 1664525U + 1013904223U;
    text += R"({"ph": "X", "cat": "kernel", "dur": )" + std::to_string(number) + "},\n";
  }
  text.resize(bytes);
  return text;
}

}  // namespace bubblesim::traces::sample

// The stored samples: which files there are, gzip without a clock, and writing them.
#include <filesystem>
#include <system_error>
#include <zlib.h>

#include "sim/base/output_file.hpp"
#include "tests/samples/samples.hpp"

namespace bubblesim::traces {
namespace {

Result<void> write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code code;
  std::filesystem::create_directories(path.parent_path(), code);
  if (code) return fail(path.parent_path().string(), "", "cannot make folder: " + code.message());
  return write_whole_file(path.string(), bytes);
}

/// Compresses as gzip does, without a time stamp or file name: the same text gives the same bytes.
Result<std::string> gzip(const std::string& text) {
  constexpr int kGzipWindow = 15 + 16;  // zlib: 16 added asks for gzip; its header holds no time
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("zlib: no memory to compress");
  std::string out(deflateBound(&stream, text.size()), '\0');
  // zlib takes its input by pointer to non-const and does not write to it.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail("zlib: cannot compress " + std::to_string(text.size()));
  return out;
}

}  // namespace

std::vector<SampleFile> sample_files() {
  std::vector<SampleFile> files;
  for (const RankTrace& trace : make_sample_training(SampleOptions{}).ranks)
    files.push_back({"training/rank" + std::to_string(trace.rank) + ".json.gz",
                     write_kineto_json(trace)});
  files.push_back({"inference.json.gz",
                   write_kineto_json(make_sample_inference(SampleServiceOptions{}).ranks[0])});
  return files;
}

Result<std::vector<std::string>> write_samples(const std::string& folder) {
  std::vector<std::string> paths;
  for (const SampleFile& file : sample_files()) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string bytes, gzip(file.json));
    const std::filesystem::path path = std::filesystem::path(folder) / file.path;
    BUBBLESIM_RETURN_IF_ERROR(write_file(path, bytes));
    paths.push_back(path.string());
  }
  return paths;
}

}  // namespace bubblesim::traces

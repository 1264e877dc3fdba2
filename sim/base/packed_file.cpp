#include "sim/base/packed_file.hpp"

#include <zlib.h>

#include <memory>
#include <vector>

namespace bubblesim {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

Result<void> read_packed_file(const std::string& path,
                              const std::function<Result<void>(std::string_view)>& take) {
  const std::unique_ptr<gzFile_s, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (!file) return fail(path, {}, "the file cannot be opened");
  std::vector<char> buffer(kChunkBytes);
  while (true) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int status = Z_OK;
    (void)gzerror(file.get(), &status);
    if (count < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      return fail(path, {}, "the file cannot be read to its end, or its compression is damaged");
    }
    if (count == 0) return {};
    BUBBLESIM_RETURN_IF_ERROR(take({buffer.data(), static_cast<std::size_t>(count)}));
  }
}

Result<std::string> read_packed_text(const std::string& path, std::size_t most_mib,
                                     std::string_view expected) {
  std::string text;
  BUBBLESIM_RETURN_IF_ERROR(read_packed_file(path, [&](std::string_view bytes) -> Result<void> {
    text += bytes;
    if (text.size() <= most_mib << 20U) return {};
    const std::string limit = std::to_string(most_mib) + " MiB";
    return fail(path, {}, "more than " + limit + "; expected " + std::string(expected));
  }));
  return text;
}

}  // namespace bubblesim

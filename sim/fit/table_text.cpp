#include "sim/fit/table_text.hpp"

#include <zlib.h>

#include <charconv>
#include <functional>
#include <memory>
#include <numeric>

namespace bubblesim::fit {
namespace {

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  const std::unique_ptr<gzFile_s, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (!file) return fail(path, {}, "the file cannot be opened");
  std::string text;
  while (true) {
    const std::size_t had = text.size();
    if (had > kMaxTableBytes) return fail(path, {}, "more than 512 MiB; expected a table");
    text.resize(had + kChunk);
    const int count = gzread(file.get(), text.data() + had, static_cast<unsigned>(kChunk));
    int status = Z_OK;
    (void)gzerror(file.get(), &status);
    if (count < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      return fail(path, {}, "the file cannot be read to its end, or its compression is damaged");
    }
    text.resize(had + static_cast<std::size_t>(count));
    if (count == 0) return text;
  }
}

Result<CsvTable> read_packed_table(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return CsvTable::parse(text, path);
}

Shapes shapes_of(std::string_view cell) {
  Shapes out;
  std::vector<double> shape;
  bool open = false;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const char letter = cell[i];
    if (letter == '[' || letter == '(') {
      open = true;
      shape.clear();
    } else if (letter == ']' || letter == ')') {
      if (open) out.push_back(shape);
      open = false;
    } else if (open && letter >= '0' && letter <= '9') {
      double value = 0;
      const auto end = std::from_chars(cell.data() + i, cell.data() + cell.size(), value).ptr;
      i = static_cast<std::size_t>(end - cell.data()) - 1;
      shape.push_back(value);
    }
  }
  return out;
}

double elements_of(const std::vector<double>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

}  // namespace bubblesim::fit

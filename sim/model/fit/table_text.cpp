#include "sim/model/fit/table_text.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

namespace bubblesim::model {
namespace {

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// Cuts text into cells. `row` grows by one cell at a time; true: the row is complete.
class CellReader {
 public:
  explicit CellReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }

  [[nodiscard]] std::vector<std::string> next_row() {
    std::vector<std::string> row(1);
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      if (quoted) {
        if (letter != '"') row.back() += letter;
        else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') row.back() += text_[++at_];
        else quoted = false;
      } else if (letter == '"') {
        quoted = true;
      } else if (letter == ',') {
        row.emplace_back();
      } else if (letter == '\n') {
        ++at_;
        break;
      } else if (letter != '\r') {
        row.back() += letter;
      }
    }
    return row;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
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

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto at = std::find(columns.begin(), columns.end(), name);
  if (at == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(at - columns.begin());
}

Result<CsvTable> parse_csv(std::string_view text, const std::string& label) {
  CellReader reader(text);
  if (reader.at_end()) return fail(label, {}, "an empty file; expected a table");
  CsvTable table;
  table.columns = reader.next_row();
  while (!reader.at_end()) {
    std::vector<std::string> row = reader.next_row();
    if (row.size() == 1 && row[0].empty()) continue;
    if (row.size() != table.columns.size()) {
      return fail(label, "row " + std::to_string(table.rows.size() + 2),
                  "found " + std::to_string(row.size()) + " cells; expected " +
                      std::to_string(table.columns.size()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result<CsvTable> read_csv(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return parse_csv(text, path);
}

std::optional<double> number_of(std::string_view cell) {
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
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

}  // namespace bubblesim::model

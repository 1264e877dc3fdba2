#include "sim/network/all_reduce_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace bubblesim::network {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSizeColumn = "size(B)";
constexpr std::array<std::pair<std::string_view, double>, 3> kTimeColumns{
    {{"time(ns)", 1.0}, {"time(us)", 1e3}, {"time(ms)", 1e6}}};
constexpr std::string_view kGpuMark = "GPU";
constexpr std::uint32_t kMaxGpus = 1024;
constexpr double kMaxNs = 1e15;  // over eleven days
constexpr double kMaxBytes = 1e15;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!cell.empty() && blank(cell.back())) cell.remove_suffix(1);
    while (!cell.empty() && blank(cell.front())) cell.remove_prefix(1);
    out.push_back(cell);
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

struct Columns {
  std::size_t size = 0;
  std::size_t time = 0;
  double nanoseconds = 1;
};

std::optional<Columns> columns_of(const std::vector<std::string_view>& header) {
  const auto size = std::find(header.begin(), header.end(), kSizeColumn);
  if (size == header.end()) return std::nullopt;
  for (const auto& [name, unit] : kTimeColumns) {
    const auto time = std::find(header.begin(), header.end(), name);
    if (time == header.end()) continue;
    return Columns{static_cast<std::size_t>(size - header.begin()),
                   static_cast<std::size_t>(time - header.begin()), unit};
  }
  return std::nullopt;
}

std::optional<AllReduceRow> row_of(const std::vector<std::string_view>& cells,
                                   const Columns& columns) {
  if (cells.size() <= std::max(columns.size, columns.time)) return std::nullopt;
  const auto size = number_of(cells[columns.size]);
  const auto time = number_of(cells[columns.time]);
  if (!size || !time || *size < 1 || *size > kMaxBytes) return std::nullopt;
  const double ns = *time * columns.nanoseconds;
  if (!(ns >= 1) || ns > kMaxNs) return std::nullopt;
  return AllReduceRow{Bytes{static_cast<std::uint64_t>(*size)}, Duration{std::llround(ns)}};
}

// "AR_GPU8_1M_1024M_LUT": 8.
std::optional<std::uint32_t> gpus_of(std::string_view name) {
  const std::size_t at = name.find(kGpuMark);
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at + kGpuMark.size());
  std::uint32_t gpus = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), gpus);
  if (fault != std::errc{} || gpus < 2 || gpus > kMaxGpus) return std::nullopt;
  return gpus;
}

Result<void> add_row(AllReduceTable& table, std::string_view line, const Columns& columns,
                     std::size_t number) {
  const std::string place = "line " + std::to_string(number);
  const auto row = row_of(cells_of(line), columns);
  if (!row) {
    return fail(table.path, place,
                "found \"" + std::string(line.substr(0, 80)) +
                    "\"; expected a size from 1 byte and a time from 1 ns");
  }
  if (!table.rows.empty() && row->bytes <= table.rows.back().bytes) {
    return fail(table.path, place, "found size " + std::to_string(row->bytes.value) + " after " +
                                       std::to_string(table.rows.back().bytes.value) +
                                       "; expected ascending sizes");
  }
  table.rows.push_back(*row);
  return {};
}

}  // namespace

Result<AllReduceTable> read_all_reduce_table(const std::string& path, std::uint32_t gpus) {
  std::ifstream file(path);
  AllReduceTable table{path, gpus, {}};
  std::string line;
  if (!file || !std::getline(file, line)) return fail(path, {}, "cannot be read, or is empty");
  const auto columns = columns_of(cells_of(line));
  if (!columns) {
    return fail(path, "line 1",
                "found \"" + line.substr(0, 80) +
                    "\"; expected columns size(B) and one of time(ns), time(us), time(ms)");
  }
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    if (line.empty() || line == "\r") continue;
    BUBBLESIM_RETURN_IF_ERROR(add_row(table, line, *columns, number));
  }
  if (table.rows.empty()) return fail(path, {}, "found no row; expected measured times");
  return table;
}

Result<std::vector<AllReduceTable>> read_all_reduce_folder(const std::string& folder) {
  std::error_code code;
  std::vector<std::pair<std::uint32_t, std::string>> files;
  for (fs::directory_iterator at(folder, code); !code && at != fs::directory_iterator();
       at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (const auto gpus = gpus_of(name)) files.emplace_back(*gpus, at->path().string());
  }
  if (code) return fail(folder, {}, "cannot be read: " + code.message());
  if (files.empty()) {
    return fail(folder, {}, "found no all-reduce table; expected names such as AR_GPU8_1M_1024M");
  }
  std::sort(files.begin(), files.end());
  std::vector<AllReduceTable> tables;
  for (const auto& [gpus, path] : files) {
    BUBBLESIM_ASSIGN_OR_RETURN(AllReduceTable table, read_all_reduce_table(path, gpus));
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace bubblesim::network

#include "sim/validate/all_reduce_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/base/csv_table.hpp"
#include "sim/network/collective_cost.hpp"

namespace bubblesim::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSizeColumn = "size(B)";
struct TimeColumn {
  std::string_view name;
  double nanoseconds;
};
constexpr std::array<TimeColumn, 3> kTimeColumns{
    {{"time(ns)", 1.0}, {"time(us)", 1e3}, {"time(ms)", 1e6}}};
constexpr std::string_view kGpuMark = "GPU";
constexpr std::uint32_t kMaxGpus = 1024;
constexpr double kMaxNs = 1e15;  // over eleven days
constexpr double kMaxBytes = 1e15;

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

// Nothing: the cells are no size from 1 byte and no time from 1 ns.
std::optional<AllReduceRow> row_of(const CsvTable& csv, std::size_t row, const TimeColumn& time) {
  const auto size = csv.figure(row, kSizeColumn);
  const auto ns = csv.figure(row, time.name);
  if (!size || !ns || *size < 1 || *size > kMaxBytes) return std::nullopt;
  const double span = *ns * time.nanoseconds;
  if (!(span >= 1) || span > kMaxNs) return std::nullopt;
  return AllReduceRow{Bytes{static_cast<std::uint64_t>(*size)}, Duration{std::llround(span)}};
}

}  // namespace

Result<AllReduceTable> read_all_reduce_table(const std::string& path, std::uint32_t gpus) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable csv,
                             CsvTable::read(path, RepeatedColumn::kFirstCounts));
  const auto time = std::find_if(kTimeColumns.begin(), kTimeColumns.end(),
                                 [&](const TimeColumn& column) { return csv.has(column.name); });
  if (!csv.has(kSizeColumn) || time == kTimeColumns.end()) {
    return fail(path, "line 1",
                "expected columns size(B) and one of time(ns), time(us), time(ms)");
  }
  AllReduceTable table{path, gpus, {}};
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    const auto row = row_of(csv, i, *time);
    if (!row) return csv.fault(i, kSizeColumn, "a size from 1 byte and a time from 1 ns");
    if (!table.rows.empty() && row->bytes <= table.rows.back().bytes) {
      return csv.fault(i, kSizeColumn, "ascending sizes");
    }
    table.rows.push_back(*row);
  }
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

bool is_fit_row(const AllReduceTable& table, std::size_t row) {
  return (table.gpus == 2 || table.gpus == 4 || table.gpus == 8) && row % 2 == 0;
}

Duration AllReducePredictor::time(std::uint32_t gpus, Bytes bytes) const {
  return topology_.solo_time(topology_.plan(network::CollectivePattern::kAllReduce, bytes,
                                            network::strided_group(0, gpus),
                                            network::Algorithm::kRing));
}

}  // namespace bubblesim::validate

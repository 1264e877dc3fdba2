#include "sim/advise/fleet/fleet_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "sim/base/csv_table.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::advise {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kJobColumns{
    "job", "hours", "gpus", "trace", "model", "plan", "cluster", "device", "memory"};
constexpr std::array<std::string_view, 9> kWorkColumns{
    "work", "trace", "model", "batch", "prompt_tokens", "output_tokens", "memory", "requests",
    "weight"};

/// The rows of one table: cells by column, faults by place.
class FleetTable {
 public:
  FleetTable(CsvTable table, Errors& faults) : table_(std::move(table)), faults_(faults) {}

  void check_columns(std::span<const std::string_view> known) {
    for (const std::string& column : table_.columns()) {
      if (std::ranges::find(known, column) != known.end()) continue;
      faults_.push_back({table_.file(), "header", unknown_name_message("column", column, known)});
    }
  }

  /// Its own in the table, and not empty.
  std::string name(std::size_t row, std::string_view column) {
    std::string name(table_.text(row, column));
    if (name.empty() || !names_.insert(name).second) fault(row, column, "a name of its own");
    return name;
  }

  std::optional<double> above_zero(std::size_t row, std::string_view column) {
    const std::string_view text = table_.text(row, column);
    if (text.empty()) return std::nullopt;
    const auto number = table_.figure(row, column);
    if (!number || *number <= 0) fault(row, column, "a number above 0");
    return number.value_or(1);
  }

  std::optional<std::uint64_t> whole(std::size_t row, std::string_view column) {
    if (table_.text(row, column).empty()) return std::nullopt;
    const auto count = table_.count(row, column);
    if (!count) faults_.push_back(count.error());
    return count.value_or(1);
  }

  /// Faults: cells that only a model reads, in a row with a trace.
  void none_with_trace(std::size_t row, std::span<const char* const> columns) {
    for (const char* column : columns) {
      if (!text(row, column).empty()) fault(row, column, "nothing, as there is a trace");
    }
  }

  /// A size such as 24GB, as written; empty if the cell is.
  std::string size(std::size_t row, std::string_view column) {
    std::string text(table_.text(row, column));
    if (text.empty()) return text;
    const auto bytes = parse_bytes(text);
    if (!bytes) {
      const std::string message = std::string(column) + ": " + bytes.error().message;
      faults_.push_back({table_.file(), table_.place(row), message});
    } else if (*bytes == Bytes{}) {
      fault(row, column, "more than that");
    }
    return text;
  }

  void fault(std::size_t row, std::string_view column, std::string_view expected) {
    faults_.push_back(table_.fault(row, column, expected).value());
  }

  /// A path of the table, absolute; a fault if nothing is there.
  std::string path(std::size_t row, std::string_view column) {
    const fs::path folder = fs::path(table_.file()).parent_path();
    std::error_code error;
    const fs::path whole = fs::absolute(folder / std::string(table_.text(row, column)), error);
    if (error || !fs::exists(whole, error)) fault(row, column, "a file or folder that exists");
    return whole.lexically_normal().string();
  }

  [[nodiscard]] std::string text(std::size_t row, std::string_view column) const {
    return std::string(table_.text(row, column));
  }
  [[nodiscard]] std::string place(std::size_t row) const { return table_.place(row); }
  [[nodiscard]] std::size_t rows() const { return table_.rows(); }

 private:
  CsvTable table_;
  Errors& faults_;
  std::set<std::string> names_;
};

constexpr std::array kJobOfModel{"plan", "cluster"};
constexpr std::array kWorkOfModel{"batch", "prompt_tokens", "output_tokens"};

std::string training_of(FleetTable& table, std::size_t row) {
  Json training = Json::object();
  const bool synth = !table.text(row, "model").empty();
  if (synth == !table.text(row, "trace").empty()) {
    table.fault(row, synth ? "trace" : "model", "either a trace, or a model, a plan and a cluster");
    return "{}";
  }
  if (synth) {
    for (const char* key : {"model", "plan", "cluster"}) {
      if (table.text(row, key).empty()) table.fault(row, key, "a name, as there is a model");
      training["synth"][key] = table.text(row, key);
    }
  } else {
    table.none_with_trace(row, kJobOfModel);
    training["trace"] = Json::array({table.path(row, "trace")});
  }
  if (const std::string memory = table.size(row, "memory"); !memory.empty()) {
    training["memory"] = memory;
  }
  return compact_text(training);
}

FleetJob job_of(FleetTable& table, std::size_t row) {
  FleetJob job;
  job.name = table.name(row, "job");
  job.place = table.place(row);
  job.training = training_of(table, row);
  job.device = table.text(row, "device");
  job.gpus = table.above_zero(row, "gpus");
  const auto hours = table.above_zero(row, "hours");
  if (!hours) table.fault(row, "hours", "a number above 0");
  job.hours = hours.value_or(1);
  return job;
}

Json program_of(FleetTable& table, std::size_t row) {
  const std::string model = table.text(row, "model");
  if (model.empty() == table.text(row, "trace").empty()) {
    table.fault(row, model.empty() ? "trace" : "model", "either a trace or a model");
    return Json::object();
  }
  if (model.empty()) {
    table.none_with_trace(row, kWorkOfModel);
    return {{"trace", table.path(row, "trace")}};
  }
  Json program{{"model", model}};
  for (const char* key : kWorkOfModel) {
    if (const auto number = table.whole(row, key)) program[key] = *number;
  }
  return program;
}

Json filler_of(const std::string& name, Json program, const std::string& memory) {
  Json filler{{"name", name}, {"mode", "offline"}, {"program", std::move(program)}};
  if (!memory.empty()) filler["memory"] = memory;
  return filler;
}

FillWork work_of(FleetTable& table, std::size_t row) {
  FillWork work;
  work.name = table.name(row, "work");
  work.place = table.place(row);
  work.filler = compact_text(
      filler_of(work.name, program_of(table, row), table.size(row, "memory")));
  work.requests = table.above_zero(row, "requests");
  work.weight = table.above_zero(row, "weight").value_or(1);
  return work;
}

template <class Row, class ReadRow>
CheckedResult<std::vector<Row>> read_rows(const std::string& path,
                                          std::span<const std::string_view> columns,
                                          std::span<const std::string_view> required,
                                          ReadRow read_row) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto read, CsvTable::read(path));
  BUBBLESIM_RETURN_IF_ERROR(read.expect(required));
  Errors faults;
  FleetTable table(std::move(read), faults);
  table.check_columns(columns);
  std::vector<Row> rows;
  for (std::size_t row = 0; row < table.rows(); ++row) rows.push_back(read_row(table, row));
  if (!faults.empty()) return tl::unexpected<Errors>(std::move(faults));
  return rows;
}

}  // namespace

CheckedResult<std::vector<FleetJob>> read_fleet_jobs(const std::string& path) {
  constexpr std::array<std::string_view, 2> kRequired{"job", "hours"};
  return read_rows<FleetJob>(path, kJobColumns, kRequired, job_of);
}

CheckedResult<std::vector<FillWork>> read_fill_work(const std::string& path) {
  constexpr std::array<std::string_view, 1> kRequired{"work"};
  return read_rows<FillWork>(path, kWorkColumns, kRequired, work_of);
}

FillWork endless_work(const std::string& trace, const std::string& memory) {
  FillWork work;
  work.name = fs::path(trace).stem().stem().string();
  std::error_code error;
  const fs::path whole = fs::absolute(trace, error).lexically_normal();
  work.filler =
      compact_text(filler_of(work.name, {{"trace", error ? trace : whole.string()}}, memory));
  return work;
}

}  // namespace bubblesim::advise

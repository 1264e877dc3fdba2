// The record of a small run; arguments set the fields that tests look at.
#pragma once

#include <string>
#include <utility>

#include "sim/store/run_record.hpp"

namespace bubblesim::store {

inline std::size_t column_place(std::string_view name) {
  const auto columns = observe::result_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  return columns.size();
}

/// The number as 32 digits.
inline std::string sample_key(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(32 - digits.size(), '0') + digits;
}

/// A row in which all cells but four have a value.
inline observe::ResultRow sample_row(std::uint32_t policy, const std::string& name) {
  observe::ResultRow row{policy, 0, {}};
  const auto columns = observe::result_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    observe::Cell& cell = row.cells.emplace_back();
    switch (columns[i].type) {
      case observe::CellType::kInteger: cell = static_cast<std::int64_t>(i) * 1000; break;
      case observe::CellType::kNumber: cell = static_cast<double>(i) / 3; break;
      case observe::CellType::kText: cell = "text " + std::to_string(i); break;
    }
  }
  row.cells[column_place("policy")] = name;
  row.cells[column_place("policy_parameters")] = std::string();
  row.cells[column_place("filler")] = std::string("resnet");
  for (const char* absent : {"latency_lower_bound_from", "training_samples_per_s",
                             "jobs_makespan_s", "jobs_deadlines_met"}) {
    row.cells[column_place(absent)] = observe::Cell();
  }
  return row;
}

inline void set_cell(RunRecord& record, std::size_t row, std::string_view column,
                     observe::Cell value) {
  record.rows[row].cells[column_place(column)] = std::move(value);
}

/// The run `number` of a sweep over load (0.1 a step): policies exclusive and mps, seed 1.
inline RunRecord sample_record(std::uint64_t number) {
  static constexpr CounterSpec kGuessed{"sizes_guessed", Severity::kNotice, "Sizes were guessed."};
  RunRecord record;
  const std::string load = "0." + std::to_string(number);
  record.run = {number, sample_key(number), "p" + std::to_string(number),
                {{"/fillers/0/load", load}, {"/device", "\"h100\""}},
                1, 0, R"({"name":"sample","load":)" + load + "}"};
  record.sweep = "load";
  record.rows = {sample_row(0, "exclusive"), sample_row(1, "mps")};
  RecordedLatency& latency = record.latencies.emplace_back();
  latency.policy = 1;
  for (int ms = 1; ms <= 20; ++ms) latency.histogram.add(std::chrono::milliseconds(ms));
  latency.histogram.add_unfinished(std::chrono::seconds(1));
  record.counters.add(kGuessed, number + 1);
  record.host = "node1";
  record.version = "0.1.0";
  record.finished_unix_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(number);
  record.cpu = std::chrono::milliseconds(250);
  return record;
}

/// The runs [from, to).
inline std::vector<RunRecord> sample_records(std::uint64_t from, std::uint64_t to) {
  std::vector<RunRecord> records;
  for (std::uint64_t i = from; i < to; ++i) records.push_back(sample_record(i));
  return records;
}

inline RunRecord failed_record(std::uint64_t number, std::string reason) {
  RunRecord record = sample_record(number);
  record.status = RunStatus::kFailed;
  record.reason = std::move(reason);
  record.rows.clear();
  record.latencies.clear();
  return record;
}

}  // namespace bubblesim::store

#include "sim/workload/kernel_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::workload {
namespace {

constexpr CounterSpec kEmptyRows{"kernel_table_rows_without_time", Severity::kInfo,
                                 "rows of a kernel table with duration 0; left out"};
constexpr CounterSpec kCutLines{
    "kernel_table_last_line_without_end", Severity::kNotice,
    "last lines of kernel tables without a line end; the last number may have been cut off"};
constexpr std::string_view kHeader = "Name,Profile,Memory_footprint,SM_usage,Duration";
constexpr std::uintmax_t kLargestFile = 64U << 20U;
constexpr std::int64_t kLongestKernelNs = 1'000'000'000'000;  // 1000 s

struct Row {
  std::string_view name;
  int profile = -1;
  std::uint64_t sms = 1;
  Duration duration{};
};

// Names may hold commas (template arguments); the four numbers at the end do not.
std::optional<Row> parse_row(std::string_view line) {
  std::array<std::string_view, 4> fields;
  for (std::size_t i = fields.size(); i-- > 0;) {
    const std::size_t comma = line.rfind(',');
    if (comma == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(comma + 1);
    line = line.substr(0, comma);
  }
  const auto profile = parse_number<int>(fields[0]);
  // Nothing uses it, but a column may be missing.
  const auto footprint = parse_number<double>(fields[1]);
  const auto sms = parse_number<double>(fields[2]);
  const auto duration = parse_number<double>(fields[3]);
  if (!profile || *profile < -1 || *profile > 1) return std::nullopt;
  if (!footprint || !(*footprint >= 0) || !(*footprint < 1e18)) return std::nullopt;
  if (!sms || !(*sms >= 1) || !(*sms < 1e9) || *sms != std::floor(*sms)) return std::nullopt;
  if (!duration || !(*duration >= 0) || !(*duration <= kLongestKernelNs)) return std::nullopt;
  return Row{line, *profile, static_cast<std::uint64_t>(*sms),
             Duration{static_cast<std::int64_t>(*duration)}};
}

program::KernelClass class_of(int profile) {
  if (profile == 1) return program::KernelClass::kCompute;
  return profile == 0 ? program::KernelClass::kMemory : program::KernelClass::kUnknown;
}

void add_kernel(program::Program& program, const Row& row, const hardware::GpuSpec& spec,
                Duration launch_gap) {
  // A block that takes all registers of an SM: one block an SM.
  program::LaunchNeeds needs;
  needs.blocks = row.sms;
  needs.threads_per_block = std::min<std::uint32_t>(1024, spec.sm.max_threads);
  needs.registers_per_thread = spec.sm.registers / needs.threads_per_block;
  program::Op op;
  op.duration = row.duration;
  op.launch_lag = program::short_span(spec.launch_latency);
  op.gap = program::short_span(spec.stream_gap);
  op.profile = static_cast<std::uint32_t>(program.profiles.size());
  op.name = program.names.intern(row.name);
  program.profiles.push_back(program::profile_kernel(needs, class_of(row.profile), spec));
  program::Step step;
  step.kind = program::StepKind::kLaunch;
  step.think = program.ops.empty() ? program::ShortSpan{} : program::short_span(launch_gap);
  step.target = static_cast<std::uint32_t>(program.ops.size());
  step.count = 1;
  program.ops.push_back(op);
  program.threads.front().steps.push_back(step);
}

void close(program::Program& program, const hardware::GpuSpec& spec) {
  program::Step wait;
  wait.kind = program::StepKind::kWaitStream;
  wait.detail = static_cast<std::uint32_t>(program.details.size());
  program.details.push_back({program::short_span(spec.sync_latency), program::kNoIndex, 0});
  program::Step end;
  end.kind = program::StepKind::kEnd;
  end.target = 1;
  program.threads.front().steps.push_back(wait);
  program.threads.front().steps.push_back(end);
  for (const program::Op& op : program.ops) program.recorded_span += op.duration;
  program.recorded_iterations = {program.recorded_span};
}

tl::unexpected<Error> refuse_line(const std::string& file, std::size_t line,
                                  std::string_view text) {
  return fail(file, "line " + std::to_string(line),
              "found \"" + std::string(text.substr(0, 80)) + "\", expected " +
                  std::string(kHeader) +
                  " with Profile -1, 0 or 1, SM_usage a whole number from 1 on and Duration in ns");
}

}  // namespace

Result<program::Program> parse_kernel_table(std::string_view text, const std::string& file,
                                   const hardware::GpuSpec& spec, Duration launch_gap) {
  program::Program program;
  program.stream_count = 1;
  program.threads.push_back({"launcher", {}});
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line_number == 1) {
      if (line != kHeader) return refuse_line(file, 1, line);
      continue;
    }
    if (line.empty()) continue;
    if (end == std::string_view::npos) program.counters.add(kCutLines);
    const auto row = parse_row(line);
    if (!row) return refuse_line(file, line_number, line);
    if (row->duration.count() == 0) {
      program.counters.add(kEmptyRows);
    } else {
      add_kernel(program, *row, spec, launch_gap);
    }
  }
  if (program.ops.empty()) return fail(file, {}, "found no kernel with a duration above 0");
  close(program, spec);
  return program;
}

Result<program::Program> read_kernel_table(const std::string& path, const hardware::GpuSpec& spec,
                                  Duration launch_gap) {
  std::error_code fault;
  const std::uintmax_t size = std::filesystem::file_size(path, fault);
  if (fault) return fail(path, {}, "cannot be read: " + fault.message());
  if (size > kLargestFile) return fail(path, {}, "found over 64 MiB, which no kernel table has");
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return parse_kernel_table(text, path, spec, launch_gap);
}

}  // namespace bubblesim::workload

#include "sim/measure/operations_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include "sim/text/csv_text.hpp"

namespace bubblesim::measure {
namespace {

std::string_view kind_text(program::WorkKind kind) {
  switch (kind) {
    case program::WorkKind::kKernel: return "kernel";
    case program::WorkKind::kCollective: return "collective";
    case program::WorkKind::kCopy: return "copy";
    case program::WorkKind::kMemset: return "memset";
  }
  return "";
}

void append_job(std::string& text, const program::Program& program,
                const capture::JobRecord& record) {
  std::vector<capture::OperationRecord> rows = record.operations;
  std::ranges::sort(rows, {}, [](const capture::OperationRecord& row) {
    return std::tuple(row.start, row.pass, row.op);
  });
  for (const capture::OperationRecord& row : rows) {
    const program::Op& op = program.ops[row.op];
    append_csv_cell(text, record.name);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},", row.pass, row.op,
                   kind_text(op.kind), op.stream);
    append_csv_cell(text, program.names[op.name]);
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},{}\n", to_ns(row.called),
                   to_ns(row.start), to_ns(row.end), to_ns(row.returned), to_ns(row.noticed));
  }
}

}  // namespace

std::string operations_csv(const std::vector<capture::RigJob>& jobs,
                           const std::vector<capture::JobOutcome>& outcomes) {
  std::string text =
      "job,pass,op,kind,stream,name,called_ns,start_ns,end_ns,returned_ns,noticed_ns\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].record) append_job(text, jobs[i].plan.program, *outcomes[i].record);
  }
  return text;
}

}  // namespace bubblesim::measure

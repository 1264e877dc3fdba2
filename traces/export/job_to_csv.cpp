#include "traces/export/job_to_csv.hpp"

#include <ostream>
#include <string_view>

#include "sim/base/output_file.hpp"
#include "sim/text/csv_text.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::string_view kHeader =
    "rank,record,index,kind,name,start_ns,duration_ns,thread,stream,device,correlation,launch,"
    "grid_x,grid_y,grid_z,block_x,block_y,block_z,registers_per_thread,shared_memory_bytes,bytes,"
    "direction,collective,group,group_size,sequence,event\n";

/// One row, cell by cell.
class Row {
 public:
  explicit Row(std::string& text) : text_(text) { text_.clear(); }

  Row& text(std::string_view cell) {
    separate();
    append_csv_cell(text_, cell);
    return *this;
  }
  template <class Integer>
  Row& number(Integer value) {
    separate();
    text_ += std::to_string(value);
    return *this;
  }
  template <class Integer>
  Row& unless_zero(Integer value) {
    return value == 0 ? empty() : number(value);
  }
  Row& empty(int cells = 1) {
    for (int i = 0; i < cells; ++i) separate();
    return *this;
  }
  void end() { text_ += '\n'; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string& text_;
  bool first_ = true;
};

void put_stream(Row& row, const RankTrace& rank, std::uint32_t stream) {
  if (stream >= rank.streams.size()) {
    row.empty(2);
    return;
  }
  row.number(rank.streams[stream].system_id).number(rank.streams[stream].device);
}

void format_call(const RankTrace& rank, std::size_t index, std::string& line) {
  const HostCall& call = rank.host_calls[index];
  Row row(line);
  row.number(rank.rank).text("host_call").number(index).text(name_of(call.kind));
  row.text(rank.names[call.name]).number(to_ns(call.start)).number(to_ns(call.duration));
  row.number(rank.threads[call.thread.index()].system_id);
  put_stream(row, rank, call.stream);
  row.unless_zero(call.correlation).empty(15).unless_zero(call.event).end();
}

void put_collective(Row& row, const RankTrace& rank, std::uint32_t index) {
  if (index == kNone) {
    row.empty(4);
    return;
  }
  const Collective& collective = rank.collectives[index];
  row.text(name_of(collective.kind)).text(rank.names[collective.group]);
  row.unless_zero(collective.group_size).number(collective.sequence);
}

void format_op(const RankTrace& rank, std::size_t index, std::string& line) {
  const DeviceOp& op = rank.device_ops[index];
  Row row(line);
  row.number(rank.rank).text("device_op").number(index).text(name_of(op.kind));
  row.text(rank.names[op.name]).number(to_ns(op.start)).number(to_ns(op.duration)).empty();
  put_stream(row, rank, op.stream.value);
  row.unless_zero(op.correlation);
  op.launch == kNone ? row.empty() : row.number(op.launch);
  if (has_known_shape(rank, op)) {
    const LaunchShape& shape = rank.shapes[op.shape];
    for (const std::uint32_t side : shape.grid) row.number(side);
    for (const std::uint32_t side : shape.block) row.number(side);
    row.unless_zero(shape.registers_per_thread).number(shape.shared_memory_bytes);
  } else {
    row.empty(8);
  }
  const bool communicates = op.collective != kNone;
  row.unless_zero(communicates ? rank.collectives[op.collective].bytes : op.bytes);
  op.direction == CopyDirection::kNone ? row.empty() : row.text(name_of(op.direction));
  put_collective(row, rank, op.collective);
  row.empty().end();
}

}  // namespace

std::uint64_t write_job_csv(std::ostream& out, const JobTrace& job) {
  out << kHeader;
  std::uint64_t rows = 0;
  std::string line;
  for (const RankTrace& rank : job.ranks) {
    for (std::size_t i = 0; i < rank.host_calls.size(); ++i) {
      format_call(rank, i, line);
      out << line;
    }
    for (std::size_t i = 0; i < rank.device_ops.size(); ++i) {
      format_op(rank, i, line);
      out << line;
    }
    rows += rank.host_calls.size() + rank.device_ops.size();
  }
  return rows;
}

Result<std::uint64_t> write_job_csv_file(const std::string& path, const JobTrace& job) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  const std::uint64_t rows = write_job_csv(file.stream(), job);
  BUBBLESIM_RETURN_IF_ERROR(file.finish());
  return rows;
}

}  // namespace bubblesim::traces

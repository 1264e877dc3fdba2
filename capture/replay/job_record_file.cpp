#include "capture/replay/job_record_file.hpp"

#include <array>
#include <utility>

#include "capture/replay/json_columns.hpp"
#include "sim/base/output_file.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::string_view kFormat = "bubblesim job record 1";

/// Instants may lie before the start (of an operation on a device's own clock).
constexpr Range<std::int64_t> kInstant{-kMostNanoseconds, kMostNanoseconds};

constexpr std::array<Choice<Severity>, 4> kSeverities{{
    {"info", Severity::kInfo},
    {"notice", Severity::kNotice},
    {"loss", Severity::kLoss},
    {"error", Severity::kError},
}};

void write_requests(JsonWriter& out, const std::vector<RequestRecord>& requests) {
  using Request = RequestRecord;
  out.open("requests");
  out.full_column("arrival_ns", requests, [](const Request& r) { return to_ns(r.arrival); });
  out.full_column("start_ns", requests, [](const Request& r) { return to_ns(r.start); });
  out.full_column("end_ns", requests, [](const Request& r) { return to_ns(r.end); });
  out.close();
}

void write_operations(JsonWriter& out, const std::vector<OperationRecord>& operations) {
  using Operation = OperationRecord;
  out.open("operations");
  out.full_column("op", operations, [](const Operation& o) { return o.op; });
  out.full_column("pass", operations, [](const Operation& o) { return o.pass; });
  out.full_column("called_ns", operations, [](const Operation& o) { return to_ns(o.called); });
  out.full_column("start_ns", operations, [](const Operation& o) { return to_ns(o.start); });
  out.full_column("end_ns", operations, [](const Operation& o) { return to_ns(o.end); });
  out.column("returned_ns", operations, [](const Operation& o) { return to_ns(o.returned); }, 0);
  out.column("noticed_ns", operations, [](const Operation& o) { return to_ns(o.noticed); }, 0);
  out.close();
}

void write_counters(JsonWriter& out, const CounterSet& counters) {
  out.open_list("counters");
  for (const auto& [name, entry] : counters) {
    out.open("");
    out.text("name", name);
    out.text("severity", severity_name(entry.severity));
    out.text("help", entry.help);
    out.whole("count", entry.count);
    out.close();
  }
  out.close_list();
}

std::vector<Duration> read_instants(ObjectReader& reader, std::string_view key) {
  const auto counts = reader.integers<std::int64_t>(key, kInstant);
  return {counts.begin(), counts.end()};
}

Duration read_span(ObjectReader& reader, std::string_view key) {
  return Duration{reader.integer<std::int64_t>(key, kSpan)};
}

void read_requests(ObjectReader reader, JobRecord& record) {
  std::vector<std::int64_t> arrival;
  ColumnReader columns(reader, "arrival_ns", kInstant, arrival);
  const auto start = columns.column<std::int64_t>("start_ns", kInstant, 0);
  const auto end = columns.column<std::int64_t>("end_ns", kInstant, 0);
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    record.requests.push_back({Duration{arrival[i]}, Duration{start[i]}, Duration{end[i]}});
  }
}

void read_operations(ObjectReader reader, JobRecord& record) {
  std::vector<std::uint32_t> op;
  ColumnReader columns(reader, "op", {}, op);
  const auto pass = columns.column<std::uint64_t>("pass", {}, 0);
  const auto called = columns.column<std::int64_t>("called_ns", kInstant, 0);
  const auto start = columns.column<std::int64_t>("start_ns", kInstant, 0);
  const auto end = columns.column<std::int64_t>("end_ns", kInstant, 0);
  const auto returned = columns.column<std::int64_t>("returned_ns", kInstant, 0);
  const auto noticed = columns.column<std::int64_t>("noticed_ns", kInstant, 0);
  record.operations.reserve(columns.rows());
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    record.operations.push_back({op[i], pass[i], Duration{called[i]}, Duration{start[i]},
                                 Duration{end[i]}, Duration{returned[i]}, Duration{noticed[i]}});
  }
}

void read_counters(ObjectReader& reader, JobRecord& record) {
  for (ObjectReader& counter : reader.children("counters")) {
    CounterSet::Entry entry;
    const std::string name = counter.text("name");
    entry.severity = counter.choice("severity", kSeverities);
    entry.help = counter.text("help");
    entry.count = counter.integer<std::uint64_t>("count");
    record.counters.add(name, entry);
  }
}

CheckedResult<JobRecord> read_record(const JsonDocument& document) {
  Errors errors;
  ObjectReader root = document.root(errors);
  JobRecord record;
  root.expect("format", kFormat);
  record.name = root.text("name");
  record.client.value = root.integer<std::uint32_t>("client", {0, kMostGateClients - 1});
  record.rank = root.integer<std::uint32_t>("rank");
  record.began = Duration{root.integer<std::int64_t>("began_ns", kInstant)};
  record.ended = Duration{root.integer<std::int64_t>("ended_ns", kInstant)};
  record.iterations = read_instants(root, "iterations_ns");
  record.passes = read_instants(root, "passes_ns");
  record.pass_requests = root.integers<std::uint64_t>("pass_requests");
  read_requests(root.child("requests"), record);
  record.unfinished = read_instants(root, "unfinished_ns");
  record.launches = root.integer<std::uint64_t>("launches");
  record.gate_time = read_span(root, "gate_time_ns");
  record.held_time = read_span(root, "held_time_ns");
  ObjectReader gate = root.child("gate");
  record.gate.launches = gate.integer<std::uint64_t>("launches");
  record.gate.ungated = gate.integer<std::uint64_t>("ungated");
  record.gate.messages_dropped = gate.integer<std::uint64_t>("messages_dropped");
  read_operations(root.child("operations"), record);
  read_counters(root, record);
  root.finish();
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return record;
}

}  // namespace

std::string job_record_text(const JobRecord& record) {
  const auto instant = [](Duration at) { return to_ns(at); };
  JsonWriter out;
  out.text("format", kFormat);
  out.text("name", record.name);
  out.whole("client", record.client.value);
  out.whole("rank", record.rank);
  out.integer("began_ns", to_ns(record.began));
  out.integer("ended_ns", to_ns(record.ended));
  out.full_column("iterations_ns", record.iterations, instant);
  out.full_column("passes_ns", record.passes, instant);
  out.full_column("pass_requests", record.pass_requests, [](std::uint64_t n) { return n; });
  write_requests(out, record.requests);
  out.full_column("unfinished_ns", record.unfinished, instant);
  out.whole("launches", record.launches);
  out.integer("gate_time_ns", to_ns(record.gate_time));
  out.integer("held_time_ns", to_ns(record.held_time));
  out.open("gate");
  out.whole("launches", record.gate.launches);
  out.whole("ungated", record.gate.ungated);
  out.whole("messages_dropped", record.gate.messages_dropped);
  out.close();
  write_operations(out, record.operations);
  write_counters(out, record.counters);
  return out.take();
}

Result<void> write_job_record(const std::string& path, const JobRecord& record) {
  return write_whole_file(path, job_record_text(record));
}

CheckedResult<JobRecord> parse_job_record(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto document, JsonDocument::parse(text, std::move(label)));
  return read_record(document);
}

CheckedResult<JobRecord> read_job_record(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto document, JsonDocument::load_file(path));
  return read_record(document);
}

}  // namespace bubblesim::capture

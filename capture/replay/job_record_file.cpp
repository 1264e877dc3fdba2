#include "capture/replay/job_record_file.hpp"

#include <array>
#include <utility>

#include "capture/replay/json_columns.hpp"
#include "sim/base/json.hpp"
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

Json requests_of(const std::vector<RequestRecord>& requests) {
  using Request = RequestRecord;
  Json out;
  put_column(out, "arrival_ns", requests, [](const Request& r) { return to_ns(r.arrival); });
  put_column(out, "start_ns", requests, [](const Request& r) { return to_ns(r.start); });
  put_column(out, "end_ns", requests, [](const Request& r) { return to_ns(r.end); });
  return out;
}

Json operations_of(const std::vector<OperationRecord>& operations) {
  using Operation = OperationRecord;
  Json out;
  put_column(out, "op", operations, [](const Operation& o) { return o.op; });
  put_column(out, "pass", operations, [](const Operation& o) { return o.pass; });
  put_column(out, "called_ns", operations, [](const Operation& o) { return to_ns(o.called); });
  put_column(out, "start_ns", operations, [](const Operation& o) { return to_ns(o.start); });
  put_column(out, "end_ns", operations, [](const Operation& o) { return to_ns(o.end); });
  put_column(out, "returned_ns", operations,
             [](const Operation& o) { return to_ns(o.returned); }, 0);
  put_column(out, "noticed_ns", operations, [](const Operation& o) { return to_ns(o.noticed); }, 0);
  return out;
}

Json counters_of(const CounterSet& counters) {
  Json out = Json::array();
  for (const auto& [name, entry] : counters) {
    out.push_back({{"name", name},
                   {"severity", severity_name(entry.severity)},
                   {"help", entry.help},
                   {"count", entry.count}});
  }
  return out;
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
  Json out{{"format", kFormat},
           {"name", record.name},
           {"client", record.client.value},
           {"rank", record.rank},
           {"began_ns", to_ns(record.began)},
           {"ended_ns", to_ns(record.ended)},
           {"pass_requests", record.pass_requests},
           {"requests", requests_of(record.requests)},
           {"launches", record.launches},
           {"gate_time_ns", to_ns(record.gate_time)},
           {"held_time_ns", to_ns(record.held_time)},
           {"gate",
            {{"launches", record.gate.launches},
             {"ungated", record.gate.ungated},
             {"messages_dropped", record.gate.messages_dropped}}},
           {"operations", operations_of(record.operations)},
           {"counters", counters_of(record.counters)}};
  put_column(out, "iterations_ns", record.iterations, instant);
  put_column(out, "passes_ns", record.passes, instant);
  put_column(out, "unfinished_ns", record.unfinished, instant);
  return columns_text(out);
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

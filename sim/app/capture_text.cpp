// What `bubblesim capture` says: of recordings, of recorders.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/capture_command.hpp"
#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

using capture::RecorderStatus;
using capture::RecordingSummary;

std::string megabytes_text(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string seconds_text(Duration span) { return fmt::format("{:.3f} s", to_seconds(span)); }

// Paths may hold bytes that are no UTF-8.
std::string list_text(const Json& list) {
  return list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json losses_json(const CounterSet& counters) {
  Json json = Json::object();
  for (const auto& [name, entry] : counters) {
    if (entry.severity >= Severity::kLoss) json[name] = entry.count;
  }
  return json;
}

}  // namespace

std::string recordings_text(const std::vector<RecordingSummary>& recordings) {
  TextTable table(
      {"rank", "file", "size", "length", "kernels", "collectives", "copies", "calls", "ranges",
       "iterations", "lost"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
       Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  std::string losses;
  for (const RecordingSummary& one : recordings) {
    table.row({fmt::format("{} of {}", one.rank, one.world_size), one.path,
               megabytes_text(one.bytes), seconds_text(one.span), fmt::to_string(one.kernels),
               fmt::to_string(one.collectives),
               fmt::to_string(one.copies), fmt::to_string(one.calls), fmt::to_string(one.ranges),
               fmt::to_string(one.iterations), fmt::to_string(one.lost)});
    for (const auto& [name, entry] : one.counters) {
      if (entry.severity < Severity::kLoss) continue;
      losses += fmt::format("  {}: {} = {}: {}\n", one.path, name, entry.count, entry.help);
    }
  }
  return table.text() + losses;
}

std::string recordings_json(const std::vector<RecordingSummary>& recordings) {
  Json list = Json::array();
  for (const RecordingSummary& one : recordings) {
    list.push_back({{"path", one.path},
                    {"rank", one.rank},
                    {"world_size", one.world_size},
                    {"device", one.device},
                    {"length_ns", to_ns(one.span)},
                    {"kernels", one.kernels},
                    {"collectives", one.collectives},
                    {"copies", one.copies},
                    {"calls", one.calls},
                    {"ranges", one.ranges},
                    {"iterations", one.iterations},
                    {"lost", one.lost},
                    {"bytes", one.bytes},
                    {"complete", one.complete},
                    {"losses", losses_json(one.counters)}});
  }
  return list_text(list);
}

std::string recorders_text(const std::vector<RecorderStatus>& recorders) {
  TextTable table(
      {"pid", "state", "rank", "program", "length", "records", "size", "lost", "iterations",
       "file"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
       Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  std::string messages;
  for (const RecorderStatus& one : recorders) {
    table.row({fmt::to_string(one.pid), std::string(capture::state_name(one.state)),
               fmt::format("{} of {}", one.rank, one.world_size), one.executable,
               seconds_text(one.recorded), fmt::to_string(one.records), megabytes_text(one.bytes),
               fmt::to_string(one.lost), fmt::to_string(one.iterations), one.output});
    if (!one.message.empty()) messages += fmt::format("  {}: {}\n", one.pid, one.message);
  }
  return table.text() + messages;
}

std::string recorders_json(const std::vector<RecorderStatus>& recorders) {
  Json list = Json::array();
  for (const RecorderStatus& one : recorders) {
    list.push_back(Json::parse(capture::encode(one), nullptr, false));
  }
  return list_text(list);
}

bool recorded_work(const std::vector<RecordingSummary>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const RecordingSummary& one) {
    return one.kernels + one.collectives + one.copies > 0;
  });
}

}  // namespace bubblesim::app

// What `bubblesim capture` says: of recordings, of recorders.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/capture_command.hpp"
#include "sim/base/json.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

using capture::RecorderStatus;
using capture::RecordingSummary;

std::string megabytes_text(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string seconds_text(Duration span) { return fmt::format("{:.3f} s", to_seconds(span)); }

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
      {Align::kRight, Align::kLeft});
  std::string losses;
  for (const RecordingSummary& recording : recordings) {
    table.row({fmt::format("{} of {}", recording.rank, recording.world_size), recording.path,
               megabytes_text(recording.bytes), seconds_text(recording.span),
               fmt::to_string(recording.kernels), fmt::to_string(recording.collectives),
               fmt::to_string(recording.copies), fmt::to_string(recording.calls),
               fmt::to_string(recording.ranges), fmt::to_string(recording.iterations),
               fmt::to_string(recording.lost)});
    for (const auto& [name, entry] : recording.counters) {
      if (entry.severity < Severity::kLoss) continue;
      losses += fmt::format("  {}: {} = {}: {}\n", recording.path, name, entry.count, entry.help);
    }
  }
  return table.text() + losses;
}

std::string recordings_json(const std::vector<RecordingSummary>& recordings) {
  const Json list = list_json(recordings, [](const RecordingSummary& recording) -> Json {
    return {{"path", recording.path},
            {"rank", recording.rank},
            {"world_size", recording.world_size},
            {"device", recording.device},
            {"length_ns", to_ns(recording.span)},
            {"kernels", recording.kernels},
            {"collectives", recording.collectives},
            {"copies", recording.copies},
            {"calls", recording.calls},
            {"ranges", recording.ranges},
            {"iterations", recording.iterations},
            {"lost", recording.lost},
            {"bytes", recording.bytes},
            {"complete", recording.complete},
            {"losses", losses_json(recording.counters)}};
  });
  return indented_text(list, 2) + "\n";
}

std::string recorders_text(const std::vector<RecorderStatus>& recorders) {
  TextTable table(
      {"pid", "state", "rank", "program", "length", "records", "size", "lost", "iterations",
       "file"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
       Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  std::string messages;
  for (const RecorderStatus& recorder : recorders) {
    table.row({fmt::to_string(recorder.pid), std::string(capture::state_name(recorder.state)),
               fmt::format("{} of {}", recorder.rank, recorder.world_size), recorder.executable,
               seconds_text(recorder.recorded), fmt::to_string(recorder.records),
               megabytes_text(recorder.bytes), fmt::to_string(recorder.lost),
               fmt::to_string(recorder.iterations), recorder.output});
    if (!recorder.message.empty())
      messages += fmt::format("  {}: {}\n", recorder.pid, recorder.message);
  }
  return table.text() + messages;
}

std::string recorders_json(const std::vector<RecorderStatus>& recorders) {
  const Json list = list_json(recorders, [](const RecorderStatus& recorder) {
    return Json::parse(capture::encode(recorder), nullptr, false);
  });
  return indented_text(list, 2) + "\n";
}

bool recorded_work(const std::vector<RecordingSummary>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const RecordingSummary& recording) {
    return recording.kernels + recording.collectives + recording.copies > 0;
  });
}

}  // namespace bubblesim::app

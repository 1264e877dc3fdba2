// `bubblesim capture`: declarations that its files share.
#pragma once

#include <string>
#include <vector>

#include "capture/control/collect_recordings.hpp"
#include "capture/control/recorder_client.hpp"
#include "capture/protocol/capture_request.hpp"
#include "sim/app/shared/app.hpp"

namespace bubblesim::app {

/// The options of a recording.
struct CaptureOptions {
  capture::StartRequest request;  ///< what needs no reading; the other options are texts
  std::string output;
  std::string duration;
  std::string max_size;
  std::string delay = "0s";
  std::string graphs = "node";
  std::string sockets;  ///< folder of path sockets; empty: none
  std::string last;
  std::string counted = "ranges";
  std::string signal = "none";
  bool light = false;
  bool hash_names = false;
  bool no_memory = false;
  bool readable = false;
};

/// Adds the options above but `sockets`. They exclude the options `excluded`.
void add_recording_options(CLI::App& command, CaptureOptions& options,
                           const std::vector<std::string>& excluded = {});
void add_sockets_option(CLI::App& command, CaptureOptions& options);

/// The fault names the option. The output is made absolute; the folder is not made.
[[nodiscard]] Result<capture::StartRequest> capture_request(const CaptureOptions& options);

/// The commands attach, stop, status, mark.
void add_capture_control_commands(CLI::App& capture, AppContext& context);

/// A row for each recording, and a line for each count of lost records.
[[nodiscard]] std::string recordings_text(
    const std::vector<capture::RecordingSummary>& recordings);
/// The recordings as a JSON list.
[[nodiscard]] std::string recordings_json(
    const std::vector<capture::RecordingSummary>& recordings);
/// A row for each recorder, and a line for each message.
[[nodiscard]] std::string recorders_text(const std::vector<capture::RecorderStatus>& recorders);
[[nodiscard]] std::string recorders_json(const std::vector<capture::RecorderStatus>& recorders);
/// Whether the device did any work in one of them.
[[nodiscard]] bool recorded_work(const std::vector<capture::RecordingSummary>& recordings);

}  // namespace bubblesim::app

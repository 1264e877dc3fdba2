// bubblesim capture attach, stop, status, mark: talks to recorders in jobs that run.
//
// Unlike the launcher these own standard output: tables, or with --json one JSON value. Exit
// codes: 0 done; 1 a recording failed or holds nothing; 2 a recorder could not be reached.
#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "capture/control/collect_recordings.hpp"
#include "capture/control/process_info.hpp"
#include "capture/control/recorder_client.hpp"
#include "capture/protocol/capture_request.hpp"
#include "sim/app/capture_command.hpp"
#include "sim/app/shared/command.hpp"
#include "sim/app/shared/own_process.hpp"

namespace bubblesim::app {
namespace {

using capture::ControlCommand;
using capture::RecorderClient;
using capture::RecorderState;
using capture::RecorderStatus;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Kind = ControlCommand::Kind;

struct ControlArguments {
  CaptureOptions options;
  std::vector<pid_t> pids;
  std::string mark;
  double timeout_s = 5;
  bool wait = false;
  bool json = false;

  [[nodiscard]] capture::ClientOptions client() const {
    return {Duration{static_cast<std::int64_t>(timeout_s * 1e9)}, options.sockets};
  }
};

/// A recorder that was told to do something, and what it said last.
struct Attached {
  RecorderClient client;
  RecorderStatus status;
  bool over = false;
};

bool is_active(RecorderState state) {
  return state != RecorderState::kIdle && state != RecorderState::kFailed;
}

void print_statuses(const std::vector<RecorderStatus>& statuses, bool json) {
  fmt::print("{}", json ? recorders_json(statuses) : recorders_text(statuses));
}

std::vector<RecorderStatus> statuses_of(const std::vector<Attached>& attached) {
  std::vector<RecorderStatus> statuses;
  for (const Attached& attachment : attached) statuses.push_back(attachment.status);
  return statuses;
}

// All of them, or every fault: nothing is asked of one where another is missing.
CheckedResult<std::vector<Attached>> find_all(const ControlArguments& arguments) {
  std::vector<Attached> found;
  Errors faults;
  std::vector<pid_t> pids = arguments.pids;
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  for (const pid_t pid : pids) {
    auto client = RecorderClient::find(pid, arguments.client());
    if (client) {
      found.push_back({std::move(*client), {}, false});
    } else {
      faults.push_back(client.error());
    }
  }
  if (!faults.empty()) return tl::make_unexpected(std::move(faults));
  return found;
}

// The same command to each; those that answered keep their answer.
Errors tell_all(std::vector<Attached>& attached, const ControlCommand& command) {
  Errors faults;
  for (Attached& attachment : attached) {
    if (attachment.over) continue;
    auto status = attachment.client.ask(command);
    if (status) {
      attachment.status = std::move(*status);
    } else {
      attachment.over = true;
      faults.push_back(status.error());
    }
  }
  return faults;
}

int code_of(const std::vector<Attached>& attached) {
  const bool failed = std::any_of(attached.begin(), attached.end(), [](const Attached& attachment) {
    return attachment.status.state == RecorderState::kFailed;
  });
  return failed ? kExitUntrusted : kExitOk;
}

std::string progress_text(const std::vector<Attached>& attached) {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::size_t active = 0;
  for (const Attached& attachment : attached) {
    records += attachment.status.records;
    bytes += attachment.status.bytes;
    if (!attachment.over) ++active;
  }
  return fmt::format("{} of {} under way, {} records, {} MB; Ctrl-C stops", active,
                     attached.size(), records, bytes / 1'000'000);
}

// Until all are over: their process ended, or they went idle. An interrupt stops them; a second
// one leaves them to themselves. False: left.
bool wait_until_over(std::vector<Attached>& attached) {
  const StopSignals signals(SecondSignal::kIsCounted);
  ProgressLine progress;
  bool stopped = false;
  for (;;) {
    bool all_over = true;
    for (Attached& attachment : attached) {
      if (!is_active(attachment.status.state)) attachment.over = true;
      all_over = all_over && attachment.over;
    }
    if (all_over) return true;
    progress.show(progress_text(attached));
    std::this_thread::sleep_for(milliseconds(250));
    if (signals.count() > 1) return false;
    if (signals.count() > 0 && !std::exchange(stopped, true)) {
      ControlCommand stop;
      stop.kind = Kind::kStop;
      static_cast<void>(tell_all(attached, stop));
    }
    // A fault here is a process that ended; its file is what it left.
    static_cast<void>(tell_all(attached, capture::status_command()));
  }
}

// Where a recorder's file is now: it is renamed when it is whole, after a last answer maybe.
std::string file_of(const RecorderStatus& status) {
  std::error_code code;
  const std::string whole = capture::whole_name(status.output);
  if (std::filesystem::exists(status.output, code)) return status.output;
  return std::filesystem::exists(whole, code) ? whole : status.output;
}

// The file to join; empty: there is none. What another user's process names is for that user to
// read and to rewrite: this program may be root, and the name may be of any file.
std::string file_to_join(const Attached& attachment) {
  const std::string process = fmt::format("process {}", attachment.status.pid);
  std::error_code code;
  const std::string path = file_of(attachment.status);
  if (path.empty()) return {};  // failed before there was a file
  if (attachment.client.user() != ::geteuid()) {
    fmt::print(stderr, "bubblesim: {} is of user {}: {} is left as its recorder wrote it\n",
               process, capture::user_text(attachment.client.user()), path);
    return {};
  }
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::regular) {
    return path;
  }
  report_fault({process, {}, "its recording is not here: " + path});
  return {};
}

// Recordings of --every and --on-signal before the last one: whole files since `began` in folders
// beside its own.
void add_earlier(std::vector<std::string>& paths, const std::string& output,
                 std::filesystem::file_time_type began) {
  for (const std::string& path : capture::recordings_in(output)) {
    std::error_code code;
    if (std::filesystem::is_symlink(path, code)) continue;
    const bool new_here = std::filesystem::last_write_time(path, code) >= began && !code;
    const bool in_folder = std::filesystem::path(path).parent_path() != output;
    const bool whole = capture::whole_name(path) == path;
    if (new_here && in_folder && whole && std::ranges::find(paths, path) == paths.end()) {
      paths.push_back(path);
    }
  }
}

int report_attached(const std::vector<Attached>& attached, bool json, const std::string& output,
                    std::filesystem::file_time_type began) {
  std::vector<std::string> paths;
  std::size_t others = 0;
  for (const Attached& attachment : attached) {
    if (attachment.status.state == RecorderState::kFailed && !attachment.status.message.empty()) {
      report_fault(
          {fmt::format("process {}", attachment.status.pid), {}, attachment.status.message});
    }
    const std::string path = file_to_join(attachment);
    if (!path.empty()) paths.push_back(path);
    if (attachment.client.user() != ::geteuid()) ++others;
  }
  const bool all_here = paths.size() + others == attached.size();
  if (others == 0) add_earlier(paths, output, began);
  const auto collected = capture::collect_in_place(paths);
  if (!collected.faults.empty()) report_faults(collected.faults);
  if (json) {
    fmt::print("{}", recordings_json(collected.recordings));
  } else if (!collected.recordings.empty()) {
    fmt::print("{}", recordings_text(collected.recordings));
  }
  const bool good = collected.faults.empty() && all_here &&
                    (paths.empty() || recorded_work(collected.recordings));
  return good ? code_of(attached) : kExitUntrusted;
}

// Before anything is started: recorders that are busy already.
Errors busy_faults(std::vector<Attached>& attached) {
  Errors faults = tell_all(attached, capture::status_command());
  for (const Attached& attachment : attached) {
    if (attachment.over || !is_active(attachment.status.state)) continue;
    faults.push_back({fmt::format("process {}", attachment.status.pid),
                      {},
                      fmt::format("is {} already, into {}; bubblesim capture stop {} ends that",
                                  capture::state_name(attachment.status.state),
                                  attachment.status.output, attachment.status.pid)});
  }
  return faults;
}

// A recorder that refuses stays idle and says why.
Errors refusals(const std::vector<Attached>& attached) {
  Errors faults;
  for (const Attached& attachment : attached) {
    if (is_active(attachment.status.state)) continue;
    faults.push_back({fmt::format("process {}", attachment.status.pid), {},
                      "does not start: " + (attachment.status.message.empty()
                                                ? "it is " + std::string(capture::state_name(
                                                                 attachment.status.state))
                                                : attachment.status.message)});
  }
  return faults;
}

ExitCode attach(const ControlArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto request, capture_request(arguments.options));
  BUBBLESIM_ASSIGN_OR_RETURN(auto attached, find_all(arguments));
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(request.output + "/rank0.btr"));
  Errors faults = busy_faults(attached);
  if (!faults.empty()) return tl::make_unexpected(faults);
  ControlCommand start;
  start.kind = Kind::kStart;
  start.start = std::move(request);
  const auto began = std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1);
  faults = tell_all(attached, start);
  if (faults.empty()) faults = refusals(attached);
  if (!faults.empty()) return tl::make_unexpected(faults);
  if (!arguments.wait) {
    print_statuses(statuses_of(attached), arguments.json);
    return kExitOk;
  }
  if (!wait_until_over(attached)) {
    fmt::print(stderr, "bubblesim: left; the recordings go on until `bubblesim capture stop`\n");
    return kExitUntrusted;
  }
  return report_attached(attached, arguments.json, start.start.output, began);
}

ExitCode stop(const ControlArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto attached, find_all(arguments));
  ControlCommand command;
  command.kind = Kind::kStop;
  Errors faults = tell_all(attached, command);
  // Writing out what is pending takes a moment; the answer came before that.
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  const auto under_way = [](const Attached& attachment) {
    return !attachment.over && is_active(attachment.status.state);
  };
  while (Clock::now() < deadline && std::any_of(attached.begin(), attached.end(), under_way)) {
    std::this_thread::sleep_for(milliseconds(100));
    for (const Error& fault : tell_all(attached, capture::status_command())) {
      faults.push_back(fault);
    }
  }
  print_statuses(statuses_of(attached), arguments.json);
  if (!faults.empty()) return tl::make_unexpected(faults);
  return code_of(attached);
}

ExitCode status(const ControlArguments& arguments) {
  if (arguments.pids.empty()) {
    const capture::RecorderSurvey survey = capture::survey_recorders(arguments.client());
    if (survey.recorders.empty() && !arguments.json) {
      fmt::print("no recorder listens; jobs have one when they are started with bubblesim "
                 "capture\n");
    } else {
      print_statuses(survey.recorders, arguments.json);
    }
    if (!survey.faults.empty()) return tl::make_unexpected(survey.faults);
    return kExitOk;
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto attached, find_all(arguments));
  const Errors faults = tell_all(attached, capture::status_command());
  if (!faults.empty()) return tl::make_unexpected(faults);
  print_statuses(statuses_of(attached), arguments.json);
  return kExitOk;
}

ExitCode mark(const ControlArguments& arguments) {
  if (auto good = capture::check_mark(arguments.mark); !good) {
    return fail("NAME", {}, good.error().message);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(auto attached, find_all(arguments));
  ControlCommand command;
  command.kind = Kind::kMark;
  command.mark = arguments.mark;
  if (const Errors faults = tell_all(attached, command); !faults.empty()) {
    return tl::make_unexpected(faults);
  }
  const RecorderStatus& answer = attached.front().status;
  if (answer.state == RecorderState::kRecording) return kExitOk;
  report_fault({fmt::format("process {}", answer.pid), {},
                "does not record, it is " + std::string(capture::state_name(answer.state)) +
                    ": there is no recording to put the mark into"});
  return kExitUntrusted;
}

auto add_control(CLI::App& capture, AppContext& context, ExitCode (*run)(const ControlArguments&),
                 const char* name, const char* help) {
  auto [command, arguments] = add_command(capture, context, run, name, help);
  add_sockets_option(*command, arguments->options);
  command->add_option("--timeout", arguments->timeout_s, "Seconds to wait for an answer")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  return std::pair(command, arguments);
}

CLI::Option* add_pids(CLI::App& command, ControlArguments& arguments) {
  return command.add_option("PID", arguments.pids, "Processes of jobs, as `status` lists them")
      ->check(CLI::Range(1, 1 << 30));
}

}  // namespace

void add_capture_control_commands(CLI::App& capture, AppContext& context) {
  constexpr const char* kJson = "Print JSON instead of a table";
  const auto [attaching, to_attach] = add_control(
      capture, context, attach, "attach",
      "Starts a recording in processes that have a recorder.\n\nExamples:\n"
      "  bubblesim capture attach 4711 -o out/run --duration 10s --wait\n"
      "  bubblesim capture attach 4711 4712 -o out/run --start-at 1800000000 --iterations 20");
  add_pids(*attaching, *to_attach)->required();
  add_recording_options(*attaching, to_attach->options);
  attaching->get_option("--output")->required();
  context.outputs.writes(*attaching, "--output", files_named({"rank"}, ".btr"));
  attaching->add_flag("--wait", to_attach->wait,
                      "Until the recordings are over; Ctrl-C stops them. Then sums them up");
  attaching->add_flag("--json", to_attach->json, kJson);

  const auto [stopping, to_stop] = add_control(
      capture, context, stop, "stop",
      "Ends recordings and waits until their files are whole.\n\nExample:\n"
      "  bubblesim capture stop 4711");
  add_pids(*stopping, *to_stop)->required();
  stopping->add_flag("--json", to_stop->json, kJson);

  const auto [asking, to_ask] = add_control(
      capture, context, status, "status",
      "What recorders do: those named, or all that you may ask.\n\nExample:\n"
      "  bubblesim capture status --json");
  add_pids(*asking, *to_ask);
  asking->add_flag("--json", to_ask->json, kJson);

  const auto [marking, to_mark] = add_control(
      capture, context, mark, "mark",
      "Puts a named instant into a recording.\n\nExample:\n"
      "  bubblesim capture mark 4711 \"evaluation begins\"");
  to_mark->pids.assign(1, 0);
  marking->add_option("PID", to_mark->pids.front(), "Process of a job")
      ->required()
      ->check(CLI::Range(1, 1 << 30));
  marking->add_option("NAME", to_mark->mark, "Of the mark")->required();
}

}  // namespace bubblesim::app

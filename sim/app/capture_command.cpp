// bubblesim capture: runs a job with the recorder in it, and makes timelines of what it recorded.
//
// The job owns standard output; what there is to say goes to standard error, and with --json one
// line of JSON ends standard output. Exit codes: sim/app/README.md.
#include "sim/app/capture_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "capture/control/job_environment.hpp"
#include "capture/control/job_process.hpp"
#include "capture/control/process_info.hpp"
#include "capture/control/recorder_client.hpp"
#include "capture/protocol/capture_request.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct LaunchArguments {
  CaptureOptions options;
  std::string library;
  std::string only;
  std::vector<std::string> command;
  bool idle = false;
  bool json = false;
};

/// A job that ran.
struct RanJob {
  ChildEnd end;
  std::map<std::int64_t, capture::RecorderStatus> seen;
  capture::JobFacts facts;
};

// Often at first, for jobs that end at once.
milliseconds pause_after(Duration running) {
  return running < std::chrono::seconds(2) ? milliseconds(50) : milliseconds(1000);
}

/// What a process's recorder says now.
Result<capture::RecorderStatus> status_of(std::int64_t pid, const std::string& sockets) {
  const capture::ClientOptions options{milliseconds(500), sockets};
  BUBBLESIM_ASSIGN_OR_RETURN(const auto client,
                             capture::RecorderClient::find(static_cast<pid_t>(pid), options));
  return client.ask(capture::status_command());
}

/// --on-signal: one to this command is for every process of the job that records; 0: none is.
class SignalToRecorders {
 public:
  SignalToRecorders(int number, const std::string& sockets) : number_(number), sockets_(sockets) {
    sigemptyset(&awaited_);
    if (number != 0) sigaddset(&awaited_, number);
    pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);
  }
  void pass_on(pid_t job, const std::map<std::int64_t, capture::RecorderStatus>& seen) const {
    const timespec at_once{};
    if (number_ == 0 || sigtimedwait(&awaited_, nullptr, &at_once) <= 0) return;
    std::vector<pid_t> family = capture::descendants(job);
    family.push_back(job);
    bool any = false;
    for (const pid_t process : family) {
      if (!seen.contains(process)) continue;
      // It may have become another program meanwhile, which such a signal would end.
      const auto status = status_of(process, sockets_);
      if (!status || status->state != capture::RecorderState::kRecording) continue;
      any = ::kill(process, number_) == 0 || any;
    }
    if (!any) fmt::print(stderr, "bubblesim: no process records now: the signal does nothing\n");
  }

 private:
  int number_;
  const std::string& sockets_;
  sigset_t awaited_;
};

RanJob wait_for(capture::JobProcess& job, const std::string& output, const std::string& sockets,
                int signal) {
  const SignalToRecorders to_recorders(signal, sockets);
  capture::RecorderWatch watch(job.pid(), output, sockets);
  ProgressLine progress;
  const auto began = Clock::now();
  for (;;) {
    const Duration running = Clock::now() - began;
    if (const auto end = job.wait(pause_after(running))) {
      progress.clear();
      return {*end, watch.seen(), {Clock::now() - began, {}, false}};
    }
    watch.look();
    to_recorders.pass_on(job.pid(), watch.seen());
    progress.show(watch.progress());
  }
}

// Files that a process which outlived the job still writes, each said.
std::vector<std::string> files_in_use(const RanJob& ran, const std::string& sockets) {
  std::vector<std::string> busy;
  for (const auto& [pid, last] : ran.seen) {
    const auto status = status_of(pid, sockets);
    if (!status || status->state == capture::RecorderState::kIdle ||
        status->state == capture::RecorderState::kFailed) {
      continue;
    }
    busy.push_back(status->output);
    fmt::print(stderr, "bubblesim: process {} goes on and still records into {}; "
                       "bubblesim capture stop {} ends that\n", pid, status->output, pid);
  }
  return busy;
}

void print_json(const RanJob& ran, const capture::CollectedRecordings& collected,
                const std::string& message) {
  const Json recordings = Json::parse(recordings_json(collected.recordings), nullptr, false);
  const Json json{{"exit_code", ran.end.exit_code},
                  {"signal", ran.end.signal},
                  {"ran_ns", to_ns(ran.facts.ran)},
                  {"recordings", recordings},
                  {"faults", list_json(collected.faults,
                                       [](const Error& fault) { return fault.text(); })},
                  {"message", message}};
  fmt::print("{}\n", compact_text(json));
}

// Says what was recorded, or why nothing was. The exit code of the command.
int report(const LaunchArguments& arguments, const RanJob& ran,
           const capture::CollectedRecordings& collected) {
  std::string message;
  if (collected.recordings.empty()) {
    message = "nothing was recorded: " +
              capture::why_nothing(ran.seen, capture::driver_state(), ran.facts);
  } else if (!recorded_work(collected.recordings)) {
    message = "the recordings hold no work of a GPU: nothing ran on it while they were made";
  }
  if (!collected.recordings.empty()) {
    fmt::print(stderr, "\n{}", recordings_text(collected.recordings));
  }
  if (!collected.faults.empty()) report_faults(collected.faults);
  if (!message.empty()) fmt::print(stderr, "bubblesim: {}\n", message);
  if (arguments.json) print_json(ran, collected, message);
  if (ran.end.exit_code != 0) return ran.end.exit_code;
  return message.empty() && collected.faults.empty() ? kExitOk : kExitUntrusted;
}

Result<void> check_arguments(const LaunchArguments& arguments) {
  if (arguments.command.empty()) {
    return fail("capture", {}, "expected a command after --: bubblesim capture -o DIR -- COMMAND");
  }
  if (!arguments.idle && arguments.options.output.empty()) {
    return fail("capture", {}, "expected -o DIR for the recordings, or --idle to record later");
  }
  return {};
}

ExitCode run_job(const LaunchArguments& arguments, const capture::JobSettings& settings,
                 const capture::JobFolder* folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto environment,
                             capture::job_environment(inherited_environment(), settings));
  for (const std::string& note : environment.notes) {
    fmt::print(stderr, "bubblesim: note: {}\n", note);
  }
  auto job = capture::JobProcess::start(arguments.command, environment.variables);
  if (!job) {
    report_fault(job.error().error);
    return job.error().exit_code;
  }
  const std::string& sockets = arguments.options.sockets;
  RanJob ran = wait_for(**job, folder == nullptr ? "" : folder->path(), sockets,
                        settings.request ? settings.request->signal : 0);
  if (folder == nullptr) return ran.end.exit_code;
  ran.facts.delay = settings.request->delay;
  ran.facts.at_a_time = settings.request->start_at_unix_s.has_value();
  ProgressLine progress;
  const auto collected =
      folder->collect(files_in_use(ran, sockets),
                      [&](const std::string& path) { progress.show("reading " + path); });
  progress.clear();
  return report(arguments, ran, collected);
}

ExitCode launch(const LaunchArguments& arguments) {
  BUBBLESIM_RETURN_IF_ERROR(check_arguments(arguments));
  capture::JobSettings settings;
  settings.socket_folder = arguments.options.sockets;
  settings.only = arguments.only;
  BUBBLESIM_ASSIGN_OR_RETURN(settings.library,
                             capture::find_library(program_folder(), arguments.library));
  if (arguments.idle) return run_job(arguments, settings, nullptr);
  BUBBLESIM_ASSIGN_OR_RETURN(auto request, capture_request(arguments.options));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto folder, capture::JobFolder::make(request.output));
  request.output = folder.path();
  settings.request = std::move(request);
  const ExitCode code = run_job(arguments, settings, &folder);
  // Nothing came into it: the job never started.
  std::error_code still_used;
  fs::remove(folder.path(), still_used);
  return code;
}

constexpr const char* kCaptureHelp =
    "Runs a job and records what its processes do on the GPU: rank<N>.btr in DIR, a file a "
    "process. Or talks to recorders in jobs that run: attach, stop, status, mark.\n\n"
    "Examples:\n"
    "  bubblesim capture -o out/run --duration 10s --delay 60s -- torchrun --nproc-per-node 8 "
    "train.py\n"
    "  bubblesim capture -o out/run --iterations 20 -- python3 train.py\n"
    "  bubblesim capture -o out/run --from-iteration 100 --iterations 20 --light -- torchrun "
    "train.py\n"
    "  bubblesim capture -o out/run --iterations 5 --every 1000 -- torchrun train.py\n"
    "  bubblesim capture -o out/run --count collectives --from-iteration 5000 --iterations 300 -- "
    "python3 train.py\n"
    "  bubblesim capture -o out/run --last 30s --on-signal URG -- python3 serve.py\n"
    "  bubblesim capture --idle -- python3 serve.py\n"
    "  bubblesim capture attach 4711 4712 -o out/run --duration 10s --wait\n"
    "  bubblesim capture status\n\n"
    "Every signal but that of --on-signal is passed on to the job, which decides; the command ends "
    "when the job has.\n\n"
    "Exit codes: the job's own (128 + n: ended by signal n; 127: no such command; 126: it cannot "
    "be run). Where that is 0: 0 if there are recordings, 1 if nothing was recorded or a file is "
    "broken; a sentence says why. 2: nothing was started, for what was asked cannot be.";

}  // namespace

void add_capture_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<LaunchArguments>();
  CLI::App* command = parser.add_subcommand("capture", kCaptureHelp);
  auto* idle = command->add_flag("--idle", arguments->idle,
                                 "Load the recorder but record nothing until attach says so");
  add_recording_options(*command, arguments->options, {"--idle"});
  add_sockets_option(*command, arguments->options);
  command->add_option("--library", arguments->library,
                      "The recorder to load (default: the libbubblesim_capture.so that came with "
                      "this program)");
  command->add_option("--only", arguments->only,
                      "Record only processes of this program: python3.11, not train.py");
  command->add_flag("--json", arguments->json, "End standard output with a line of JSON")
      ->excludes(idle);
  command->add_option("COMMAND", arguments->command, "The job, after --");
  // From the job's first word on, all is the job's.
  command->positionals_at_end();
  add_capture_control_commands(*command, context);
  context.outputs.writes(*command, "--output", files_named({"rank"}, ".btr"));
  command->callback([command, arguments, &context] {
    if (command->get_subcommands().empty()) context.exit_code = reported(launch(*arguments));
  });
}

// The options of `bubblesim capture` that say what is to be recorded.

namespace {

Result<Duration> read_span(const char* option, const std::string& text, Duration least) {
  const auto span = parse_duration(text);
  if (!span) return fail(option, {}, span.error().message);
  if (*span < least || *span > capture::kLongestSpan) {
    return fail(option, {}, "found " + quote_found(text) + "; expected " +
                                (least > Duration{} ? "more than 0s" : "0s or more") +
                                ", at most 366 days");
  }
  return *span;
}

Result<std::string> absolute_output(const std::string& output) {
  std::error_code fault;
  std::string path = std::filesystem::absolute(output, fault).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (fault) return fail(output, {}, fault.message());
  if (auto good = capture::check_output(path); !good) {
    return fail("-o", {}, good.error().message);
  }
  return path;
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<void> check_start_at(std::int64_t second) {
  const std::int64_t now = unix_seconds();
  if (second > now && second <= capture::kLastStartUnixSeconds) return {};
  return fail("--start-at", {}, "found " + std::to_string(second) +
                                    "; expected a second of Unix time to come (it is " +
                                    std::to_string(now) + " now)");
}

template <class T, std::size_t N>
std::vector<std::string> words_of(const std::array<Choice<T>, N>& choices) {
  std::vector<std::string> words;
  for (const Choice<T>& choice : choices) words.emplace_back(choice.name);
  return words;
}

template <class T, std::size_t N>
T value_of(const std::string& word, const std::array<Choice<T>, N>& choices) {
  return std::ranges::find(choices, word, &Choice<T>::name)->value;
}

}  // namespace

void add_recording_options(CLI::App& command, CaptureOptions& options,
                           const std::vector<std::string>& excluded) {
  const std::vector<CLI::Option*> added{
      command.add_option("-o,--output", options.output,
                         "Folder for rank<N>.btr, a file a process; made if it is not there"),
      command.add_option("--duration", options.duration,
                         "Stop after so long: 500ms, 10s, 5min (default: when the job ends)"),
      command.add_option("--iterations", options.request.iterations,
                         "Stop after so many whole iterations, as NVTX ranges mark them")
          ->check(CLI::Range(std::uint32_t{1}, ~std::uint32_t{0})),
      command.add_option("--max-size", options.max_size,
                         "Stop when a rank's file is so large: 500MB, 2GiB; at least 1MiB"),
      command.add_option("--delay", options.delay,
                         "Begin so long after CUDA's start (attach: from now)")
          ->capture_default_str(),
      command.add_option("--start-at", options.request.start_at_unix_s,
                         "Begin at this second of Unix time, the same on all ranks and nodes"),
      command.add_option("--from-iteration", options.request.first_iteration,
                         "Begin where the iteration of this number does, the same on all ranks: as "
                         "NVTX ranges number them (iteration 100), or --count collectives"),
      command.add_option("--every", options.request.every,
                         "Record --iterations again each so many iterations, a folder "
                         "iterations-<N> each")
          ->check(CLI::Range(std::uint32_t{1}, ~std::uint32_t{0}))
          ->needs("--iterations"),
      command.add_option("--count", options.counted,
                         "What iterations are: ranges of NVTX, or collectives of the communicator "
                         "of most ranks, whose numbers are the same on all of them")
          ->check(CLI::IsMember(words_of(capture::kCountWords)))
          ->capture_default_str(),
      command.add_option("--on-signal", options.signal,
                         "At each such signal, to this command or to a process, what has been "
                         "recorded (--last: of the last time) becomes files in a folder "
                         "signal-<N>, and recording goes on; the job must not handle the signal")
          ->check(CLI::IsMember(words_of(capture::kSignalWords)))
          ->excludes("--every")
          ->capture_default_str(),
      command.add_option("--last", options.last,
                         "Keep the last 10s (or so) in memory; they become files at --on-signal, "
                         "at bubblesim capture stop, or when the job ends"),
      command.add_option("--graphs", options.graphs,
                         "CUDA graphs by node, or each launch as one operation (cheaper)")
          ->check(CLI::IsMember(words_of(capture::kGraphsWords)))
          ->capture_default_str(),
      command.add_flag("--no-memory", options.no_memory, "Do not record memory allocations"),
      command.add_flag("--light", options.light,
                       "Kernels and collectives alone: no host calls but NCCL's launches, no "
                       "copies, waits or memory (cheaper)"),
      command.add_flag("--hash-names", options.hash_names,
                       "Hash the names of kernels and ranges, but for NCCL's and what marks "
                       "iterations and phases"),
      command.add_flag("--readable", options.readable,
                       "Other users may read the files, which name the job's kernels")};
  for (const std::string& name : excluded) {
    for (CLI::Option* option : added) option->excludes(name);
  }
}

void add_sockets_option(CLI::App& command, CaptureOptions& options) {
  command.add_option("--sockets", options.sockets,
                     "Folder of sockets that host and container share, for recorders in "
                     "containers")
      ->envname(capture::kEnvSocketFolder)
      ->check(CLI::ExistingDirectory);
}

Result<capture::StartRequest> capture_request(const CaptureOptions& options) {
  capture::StartRequest request = options.request;
  BUBBLESIM_ASSIGN_OR_RETURN(request.output, absolute_output(options.output));
  if (!options.duration.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(request.duration,
                               read_span("--duration", options.duration, Duration{1}));
  }
  if (!options.last.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(request.last, read_span("--last", options.last, Duration{1}));
  }
  if (request.every && !request.first_iteration) request.first_iteration = 0;
  BUBBLESIM_ASSIGN_OR_RETURN(request.delay, read_span("--delay", options.delay, Duration{}));
  if (!options.max_size.empty()) {
    const auto bytes = parse_bytes(options.max_size);
    if (!bytes) return fail("--max-size", {}, bytes.error().message);
    if (*bytes < capture::kLeastMaxBytes) {
      return fail("--max-size", {},
                  "found " + quote_found(options.max_size) + "; expected 1MiB or more");
    }
    request.max_bytes = bytes->value;
  }
  if (request.start_at_unix_s) BUBBLESIM_RETURN_IF_ERROR(check_start_at(*request.start_at_unix_s));
  request.graphs = value_of(options.graphs, capture::kGraphsWords);
  request.counted = value_of(options.counted, capture::kCountWords);
  request.signal = value_of(options.signal, capture::kSignalWords);
  request.memory = !options.no_memory;
  if (options.light) request.detail = capture::Detail::kLight;
  if (options.hash_names) request.names = capture::Names::kHashed;
  if (options.readable) request.readers = capture::Readers::kAll;
  return request;
}

}  // namespace bubblesim::app

// The options of `bubblesim capture` that say what is to be recorded.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "capture/protocol/request_limits.hpp"
#include "sim/app/capture_command.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::app {
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

}  // namespace

void add_recording_options(CLI::App& command, CaptureOptions& options,
                           const std::vector<std::string>& excluded) {
  const std::vector<CLI::Option*> added{
      command.add_option("-o,--output", options.output,
                         "Folder for rank<N>.btr, a file a process; made if it is not there"),
      command.add_option("--duration", options.duration,
                         "Stop after so long: 500ms, 10s, 5min (default: when the job ends)"),
      command.add_option("--iterations", options.iterations,
                         "Stop after so many whole iterations, as NVTX ranges mark them")
          ->check(CLI::Range(std::uint32_t{1}, ~std::uint32_t{0})),
      command.add_option("--max-size", options.max_size,
                         "Stop when a rank's file is so large: 500MB, 2GiB; at least 1MiB"),
      command.add_option("--delay", options.delay,
                         "Begin so long after CUDA's start (attach: from now)")
          ->capture_default_str(),
      command.add_option("--start-at", options.start_at,
                         "Begin at this second of Unix time, the same on all ranks and nodes"),
      command.add_option("--graphs", options.graphs,
                         "CUDA graphs by node, or each launch as one operation (cheaper)")
          ->check(CLI::IsMember({"node", "graph"}))
          ->capture_default_str(),
      command.add_flag("--no-memory", options.no_memory, "Do not record memory allocations"),
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
  capture::StartRequest request;
  BUBBLESIM_ASSIGN_OR_RETURN(request.output, absolute_output(options.output));
  if (!options.duration.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(request.duration,
                               read_span("--duration", options.duration, Duration{1}));
  }
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
  if (options.start_at) BUBBLESIM_RETURN_IF_ERROR(check_start_at(*options.start_at));
  request.start_at_unix_s = options.start_at;
  request.iterations = options.iterations;
  request.graphs = options.graphs == "graph" ? capture::GraphRecords::kGraph
                                             : capture::GraphRecords::kNode;
  request.memory = !options.no_memory;
  if (options.readable) request.readers = capture::Readers::kAll;
  return request;
}

}  // namespace bubblesim::app

// Starts a fake job with the recorder in it, talks to it, waits for it and reads its recording.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "tests/temp_folder.hpp"
#include "traces/format/trace_reader.hpp"

namespace bubblesim::capture {

/// How a job ended.
struct JobEnd {
  int code = -1;    ///< exit code; -1: a signal ended it
  int signal = 0;
  std::string error;  ///< what it wrote to stderr
};

class ScratchFolder : public TempFolder {
 public:
  [[nodiscard]] std::string file(const std::string& name) const { return path(name); }
  /// Names of the files in it, sorted.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

using Variables = std::map<std::string, std::string>;

constexpr std::chrono::seconds kPatience{30};

inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// This process's environment without what is ours to set, and `variables`.
inline std::vector<std::string> environment_with(const Variables& variables) {
  Variables all{{"CUDA_INJECTION64_PATH", CAPTURE_LIBRARY},
                {"BUBBLESIM_CAPTURE_CUPTI", FAKE_CUPTI_LIBRARY}};
  for (const auto& [name, value] : variables) all[name] = value;
  std::vector<std::string> texts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool ours = name.starts_with("BUBBLESIM_") || name == "RANK" || name == "WORLD_SIZE";
    if (!ours && !all.contains(name)) texts.push_back(text);
  }
  for (const auto& [name, value] : all) texts.push_back(name + "=" + value);
  return texts;
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  int ends[2] = {-1, -1};
};

/// The environment of a job whose recording begins at once, into `folder`.
[[nodiscard]] inline Variables recording_to(const ScratchFolder& folder, Variables more = {}) {
  more.insert({{kEnvStart, "now"}, {kEnvOutput, folder.path()}});
  return more;
}

/// Connects to the recorder of a process; -1: no recorder listens.
inline int connect_to(pid_t process) {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const ControlAddress where = abstract_address(::geteuid(), process);
  const auto* address = reinterpret_cast<const sockaddr*>(&where.address);
  // The job may not have come to cuInit yet.
  for (int i = 0; i < 1000; ++i) {
    if (::connect(socket, address, where.length) == 0) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::close(socket);
  return -1;
}

class JobProcess {
 public:
  /// Starts the fake job with these verbs (tests/fakes/job/fake_verbs.hpp) and the recorder.
  JobProcess(const std::vector<std::string>& verbs, const Variables& variables) {
    std::vector<std::string> words{FAKE_JOB};
    words.insert(words.end(), verbs.begin(), verbs.end());
    std::vector<std::string> environment = environment_with(variables);
    const std::vector<char*> arguments = pointers(words), entries = pointers(environment);
    Pipe input, output, error;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(input.ends[0], STDIN_FILENO);
      ::dup2(output.ends[1], STDOUT_FILENO);
      ::dup2(error.ends[1], STDERR_FILENO);
      ::execve(FAKE_JOB, arguments.data(), entries.data());
      ::_exit(127);
    }
    for (const int end : {input.ends[0], output.ends[1], error.ends[1]}) ::close(end);
    input_ = input.ends[1];
    output_ = output.ends[0];
    error_ = error.ends[0];
  }
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;
  /// Kills the job if it still runs.
  ~JobProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const int end : {input_, output_, error_}) ::close(end);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits for a line of the job's stdout; false: the job ended or took too long.
  [[nodiscard]] bool says(const std::string& line) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      if (const std::size_t at = pending_.find(line + "\n"); at != std::string::npos) {
        pending_.erase(0, at + line.size() + 1);
        return true;
      }
      pollfd waiting{output_, POLLIN, 0};
      if (::poll(&waiting, 1, 100) <= 0) continue;
      std::array<char, 256> bytes{};
      const ssize_t got = ::read(output_, bytes.data(), bytes.size());
      if (got <= 0) return false;
      pending_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return false;
  }
  /// Lets the job's verb "hear" go on.
  void tell() { EXPECT_EQ(::write(input_, "\n", 1), 1); }
  [[nodiscard]] JobEnd wait() {
    JobEnd end;
    std::array<char, 4096> bytes{};
    // Until the last holder of its stderr is gone, or too long.
    for (pollfd waiting{error_, POLLIN, 0}; ::poll(&waiting, 1, 60'000) > 0;) {
      const ssize_t got = ::read(error_, bytes.data(), bytes.size());
      if (got <= 0) break;
      end.error.append(bytes.data(), static_cast<std::size_t>(got));
    }
    int status = 0;
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << "the job hangs; so far it said: " << end.error;
        return end;  // the destructor kills it
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    return end;
  }

  /// Sends a command over the control socket; nothing: there is no answer.
  [[nodiscard]] std::optional<RecorderStatus> command(const ControlCommand& command) const {
    const int socket = connect_to(pid_);
    if (socket < 0) return std::nullopt;
    const std::string text = encode(command);
    EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    std::string answer(kMaxMessageBytes, '\0');
    const ssize_t got = ::recv(socket, answer.data(), answer.size(), 0);
    ::close(socket);
    if (got <= 0) return std::nullopt;
    answer.resize(static_cast<std::size_t>(got));
    auto status = decode_status(answer);
    EXPECT_TRUE(status.has_value()) << answer;
    return status ? std::optional(*status) : std::nullopt;
  }
  [[nodiscard]] std::optional<RecorderStatus> status() const { return command({}); }
  [[nodiscard]] std::optional<RecorderStatus> stop() const {
    ControlCommand stop;
    stop.kind = ControlCommand::Kind::kStop;
    return command(stop);
  }
  [[nodiscard]] std::optional<RecorderStatus> start(const std::string& output) const {
    ControlCommand start;
    start.kind = ControlCommand::Kind::kStart;
    start.start.output = output;
    return command(start);
  }
  /// Asks until the recorder is in `state`; returns the last answer.
  [[nodiscard]] RecorderStatus await(RecorderState state) const {
    RecorderStatus last;
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      const auto now = status();
      if (!now) break;
      last = *now;
      if (last.state == state) return last;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "waited for " << state_name(state) << ", found " << state_name(last.state)
                  << ": " << last.message;
    return last;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  std::string pending_;
};

/// The contents of a recording; read_recording() fails the test if the file cannot be read.
struct Recorded {
  traces::RankTrace trace;
  CounterSet file_counters;  ///< losses that reading the file counted

  [[nodiscard]] std::size_t kernels(const std::string& name) const {
    return static_cast<std::size_t>(
        std::count_if(trace.device_ops.begin(), trace.device_ops.end(), [&](const auto& op) {
          return op.kind == traces::DeviceOpKind::kKernel && trace.names[op.name] == name;
        }));
  }
  [[nodiscard]] std::size_t calls(const std::string& name) const {
    return static_cast<std::size_t>(
        std::count_if(trace.host_calls.begin(), trace.host_calls.end(),
                      [&](const auto& call) { return trace.names[call.name] == name; }));
  }
  [[nodiscard]] std::size_t markers(traces::MarkerKind kind) const {
    return static_cast<std::size_t>(
        std::count_if(trace.markers.begin(), trace.markers.end(),
                      [&](const auto& marker) { return marker.kind == kind; }));
  }
};

/// Runs a job to its end.
inline JobEnd run_job(const std::vector<std::string>& verbs, const Variables& variables) {
  return JobProcess(verbs, variables).wait();
}

inline Recorded read_recording(const std::string& path) {
  auto read = traces::format::read_job(path);
  if (!read) {
    ADD_FAILURE() << read.error().text();
    return {};
  }
  if (read->job.ranks.size() != 1) {
    ADD_FAILURE() << path << " holds " << read->job.ranks.size() << " ranks";
    return {};
  }
  return {std::move(read->job.ranks.front()), std::move(read->counters)};
}

/// A job that records into a folder of its own, runs to its end and is read.
class JobTest : public testing::Test {
 protected:
  const JobEnd& run(const std::vector<std::string>& verbs, const Variables& more = {}) {
    return end = run_job(verbs, recording_to(folder, more));
  }
  void succeed(const std::vector<std::string>& verbs, const Variables& more = {}) {
    EXPECT_EQ(run(verbs, more).code, 0) << end.error;
  }
  [[nodiscard]] Recorded record(const std::vector<std::string>& verbs, const Variables& more = {},
                                const std::string& file = "rank0.btr") {
    succeed(verbs, more);
    return read_recording(folder.file(file));
  }

  const ScratchFolder folder;
  JobEnd end;  ///< of the last job
};

}  // namespace bubblesim::capture

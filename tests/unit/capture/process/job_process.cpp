#include "tests/unit/capture/process/job_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "capture/protocol/capture_request.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::chrono::seconds kPatience{30};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// This process's environment without what is ours to set, and `variables`.
std::vector<std::string> environment_with(const Variables& variables) {
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

}  // namespace

std::vector<std::string> ScratchFolder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Variables recording_to(const ScratchFolder& folder, Variables more) {
  more.insert({{kEnvStart, "now"}, {kEnvOutput, folder.path()}});
  return more;
}

JobProcess::JobProcess(const std::vector<std::string>& verbs, const Variables& variables) {
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

JobProcess::~JobProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int end : {input_, output_, error_}) ::close(end);
}

bool JobProcess::says(const std::string& line) {
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

void JobProcess::tell() { EXPECT_EQ(::write(input_, "\n", 1), 1); }

JobEnd JobProcess::wait() {
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

int connect_to(pid_t process) {
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

std::optional<RecorderStatus> JobProcess::command(const ControlCommand& command) const {
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

std::optional<RecorderStatus> JobProcess::stop() const {
  ControlCommand stop;
  stop.kind = ControlCommand::Kind::kStop;
  return command(stop);
}

std::optional<RecorderStatus> JobProcess::start(const std::string& output) const {
  ControlCommand start;
  start.kind = ControlCommand::Kind::kStart;
  start.start.output = output;
  return command(start);
}

RecorderStatus JobProcess::await(RecorderState state) const {
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

JobEnd run_job(const std::vector<std::string>& verbs, const Variables& variables) {
  return JobProcess(verbs, variables).wait();
}

Recorded read_recording(const std::string& path) {
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

std::size_t Recorded::kernels(const std::string& name) const {
  return static_cast<std::size_t>(
      std::count_if(trace.device_ops.begin(), trace.device_ops.end(), [&](const auto& op) {
        return op.kind == traces::DeviceOpKind::kKernel && trace.names[op.name] == name;
      }));
}

std::size_t Recorded::calls(const std::string& name) const {
  return static_cast<std::size_t>(
      std::count_if(trace.host_calls.begin(), trace.host_calls.end(),
                    [&](const auto& call) { return trace.names[call.name] == name; }));
}

std::size_t Recorded::markers(traces::MarkerKind kind) const {
  return static_cast<std::size_t>(
      std::count_if(trace.markers.begin(), trace.markers.end(),
                    [&](const auto& marker) { return marker.kind == kind; }));
}

}  // namespace bubblesim::capture

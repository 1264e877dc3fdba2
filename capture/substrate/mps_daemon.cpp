#include "capture/substrate/mps_daemon.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "capture/control/process_info.hpp"
#include "sim/base/child_process.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {
namespace {

// A short-lived program: its input, its output, its end; every wait for it has a limit.

struct ProgramEnd {
  int exit_code = 0;   ///< 128 + n where signal n ended it
  std::string output;  ///< both outputs, at most 64 KiB
};

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 64 * 1024;

/// A file without a name as a program's input or output: unlike a pipe it never blocks either side,
/// and may safely stay open in a daemon.
class NamelessFile {
 public:
  NamelessFile() : file_(::memfd_create("bubblesim-program", MFD_CLOEXEC)) {}
  ~NamelessFile() {
    if (file_ >= 0) ::close(file_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  [[nodiscard]] int number() const { return file_; }
  [[nodiscard]] bool write(const std::string& text) const {
    return file_ >= 0 &&
           ::pwrite(file_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  }
  [[nodiscard]] std::string read() const {
    std::string text(kMostOutput, '\0');
    const ssize_t got = ::pread(file_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int file_;
};

// The file for `name` in the PATH of `environment`; empty: there is none.
std::string find_program(const std::string& name, const Variables& environment) {
  const auto path = environment.find("PATH");
  std::string rest = path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const std::string file = rest.substr(0, end) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return {};
}

// `command[0]` is a path. Runs in a session of its own, so that a terminal's signals reach neither
// the program nor processes that it leaves. Faults: it could not be started; it had not ended after
// `patience` of the machine's time, and was killed.
Result<ProgramEnd> run_program(const std::vector<std::string>& command,
                               const Variables& environment, const std::string& input,
                               Duration patience) {
  const NamelessFile input_file;
  const NamelessFile out;
  if (out.number() < 0 || !input_file.write(input))
    return fail(command[0], {}, std::string("cannot hold its input: ") + ::strerror(errno));
  const auto pid = start_child(
      command, environment,
      {{}, ChildGroup::kOwnSession, input_file.number(), out.number(), out.number()});
  if (!pid) return tl::make_unexpected(pid.error().error);
  const auto until = Steady::now() + patience;
  std::optional<ChildEnd> end;
  while (!(end = reap_child(*pid))) {
    if (Steady::now() >= until) {
      ::kill(*pid, SIGKILL);
      ::waitpid(*pid, nullptr, 0);
      return fail(command[0], {}, "had not ended after " +
                                      std::to_string(to_ns(patience) / 1'000'000) +
                                      " ms and was killed");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return ProgramEnd{end->exit_code, out.read()};
}

constexpr const char* kProgram = "nvidia-cuda-mps-control";
/// sun_path holds 108 bytes; the daemon appends file names to the folder.
constexpr std::size_t kLongestFolder = 80;

pid_t pid_in(const std::string& pipe_directory) {
  const std::string text =
      read_text_file(pipe_directory + "/" + kProgram + ".pid").value_or(std::string());
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

/// The start time of a process (field 22 of /proc/PID/stat, in clock ticks since the boot); empty:
/// it is gone, or has ended and waits for its parent.
std::string start_of(pid_t pid) {
  constexpr std::size_t kAfterState = 19;
  if (pid <= 0) return {};
  const std::string text =
      read_text_file("/proc/" + std::to_string(pid) + "/stat").value_or(std::string());
  const std::size_t name = text.rfind(") ");
  if (name == std::string::npos || text[name + 2] == 'Z') return {};
  std::size_t at = name + 2;
  for (std::size_t i = 0; i < kAfterState; ++i) at = text.find(' ', at) + 1;
  return text.substr(at, text.find(' ', at) - at);
}

Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  return fail(path, {}, std::string("cannot make the folder: ") + ::strerror(errno));
}

std::string with_output(const std::string& what, const ProgramEnd& end) {
  return what + " (exit " + std::to_string(end.exit_code) + "): " +
         (end.output.empty() ? "it said nothing" : end.output);
}

}  // namespace

Result<std::unique_ptr<MpsDaemon>> MpsDaemon::start(const MpsSettings& settings) {
  std::unique_ptr<MpsDaemon> daemon(new MpsDaemon);
  daemon->settings_ = settings;
  daemon->program_ = find_program(kProgram, settings.environment);
  if (daemon->program_.empty())
    return fail(std::string("no ") + kProgram + " in PATH; it comes with NVIDIA's driver, and "
                "without it processes cannot share the GPU by MPS");
  if (settings.folder.size() > kLongestFolder)
    return fail(settings.folder, {}, "is too long for the daemon's sockets; at most " +
                                         std::to_string(kLongestFolder) + " bytes fit");
  daemon->pipe_ = settings.folder + "/mps-pipe";
  daemon->logs_ = settings.folder + "/mps-log";
  daemon->note_others();
  BUBBLESIM_RETURN_IF_ERROR(daemon->launch());
  return daemon;
}

void MpsDaemon::note_others() {
  const auto given = settings_.environment.find("CUDA_MPS_PIPE_DIRECTORY");
  const std::string place =
      given == settings_.environment.end() ? "/tmp/nvidia-mps" : given->second;
  const pid_t other = pid_in(place);
  if (start_of(other).empty()) return;
  notes_.push_back("an MPS daemon (process " + std::to_string(other) + ") was there before, at " +
                   place + ": it is left alone, and its clients may be on the same GPU");
}

Result<void> MpsDaemon::launch() {
  BUBBLESIM_RETURN_IF_ERROR(make_folder(pipe_));
  if (auto made = make_folder(logs_); !made) {
    remove_folders();
    return made;
  }
  environment_ = settings_.environment;
  std::erase_if(environment_,
                [](const auto& variable) { return variable.first.starts_with("CUDA_MPS_"); });
  environment_["CUDA_MPS_PIPE_DIRECTORY"] = pipe_;
  environment_["CUDA_MPS_LOG_DIRECTORY"] = logs_;
  if (!settings_.device.empty()) {
    environment_["CUDA_VISIBLE_DEVICES"] = settings_.device;
    // An index is nvidia-smi's, as in the environments of workers.
    if (!settings_.device.starts_with("GPU-")) environment_["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  const auto end = run_program({program_, "-d"}, environment_, "", settings_.patience);
  pid_ = pid_in(pipe_);
  started_ = start_of(pid_);
  running_ = end.has_value() && end->exit_code == 0;
  Result<void> works = running_ ? probe() : Result<void>{};
  if (running_ && works) return {};
  std::string said = log();
  (void)quit();
  remove_folders();
  if (!said.empty()) said = "; its log: " + said;
  if (!end) return fail(end.error().text() + said);
  if (end->exit_code != 0) return fail(program_, {}, with_output("did not start", *end) + said);
  return fail(works.error().text() + said);
}

Result<void> MpsDaemon::probe() const {
  BUBBLESIM_ASSIGN_OR_RETURN(const ProgramEnd end,
                             run_program({program_}, environment_, "get_server_list\n",
                                         settings_.patience));
  if (end.exit_code == 0) return {};
  return fail(program_, {}, with_output("started, and does not answer", end));
}

std::string MpsDaemon::log() const {
  return read_text_file(logs_ + "/control.log").value_or(std::string()) +
         read_text_file(logs_ + "/server.log").value_or(std::string());
}

bool MpsDaemon::gone_within(Duration patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!started_.empty() && start_of(pid_) == started_) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Result<void> MpsDaemon::quit() {
  if (!running_ && started_.empty()) return {};
  running_ = false;
  const auto told = run_program({program_}, environment_, "quit\n", settings_.patience);
  const bool went = gone_within(settings_.patience);
  if (!went) {
    for (const pid_t server : descendants(pid_)) ::kill(server, SIGKILL);
    ::kill(pid_, SIGKILL);
  }
  started_.clear();
  remove_folders();
  if (!went)
    return fail(program_, {}, "process " + std::to_string(pid_) + " did not quit and was killed");
  if (!told) return tl::make_unexpected(told.error());
  return {};
}

void MpsDaemon::remove_folders() const {
  std::error_code ignored;
  std::filesystem::remove_all(pipe_, ignored);
  std::filesystem::remove_all(logs_, ignored);
}

MpsDaemon::~MpsDaemon() { (void)quit(); }

}  // namespace bubblesim::capture

#include "capture/substrate/program_run.hpp"

#include <sys/wait.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace bubblesim::capture {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 64 * 1024;

/// A file without a name that a program reads as its input or writes its outputs to: unlike a pipe
/// it never blocks either side, and stays open in a daemon to nobody's harm.
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

}  // namespace

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

}  // namespace bubblesim::capture

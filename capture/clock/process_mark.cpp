#include "capture/clock/process_mark.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace bubblesim::capture {
namespace {

struct ProcessState {
  char state = '?';
  std::uint64_t threads = 0;
  std::uint64_t start = 0;
};

// "/proc/PID/stat" without allocation.
std::array<char, 40> stat_path(std::int32_t pid) noexcept {
  std::array<char, 40> path{"/proc/"};
  char* end = std::to_chars(path.data() + 6, path.data() + 24, pid).ptr;
  std::memcpy(end, "/stat", 6);
  return path;
}

std::uint64_t number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Parses the fields after the name, which may contain anything: fields count from its last bracket.
ProcessState parse(std::string_view text) noexcept {
  ProcessState found;
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string_view::npos || bracket + 2 >= text.size()) return found;
  text.remove_prefix(bracket + 2);
  for (int field = 3; field <= 22 && !text.empty(); ++field) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (field == 3) found.state = word.empty() ? '?' : word.front();
    if (field == 20) found.threads = number(word);
    if (field == 22) found.start = number(word);
    text.remove_prefix(word.size() == text.size() ? word.size() : word.size() + 1);
  }
  return found;
}

std::optional<ProcessState> read_state(std::int32_t pid) noexcept {
  const int file = open(stat_path(pid).data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t count = read(file, text.data(), text.size());
  close(file);
  if (count <= 0) return std::nullopt;
  return parse({text.data(), static_cast<std::size_t>(count)});
}

std::uint64_t pid_space() noexcept {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace

ProcessMark this_process() noexcept {
  ProcessMark mark{getpid(), 0, pid_space()};
  if (const auto state = read_state(mark.pid)) mark.start = state->start;
  return mark;
}

bool has_ended(const ProcessMark& process) noexcept {
  if (process.pid <= 0 || process.space == 0 || process.space != pid_space()) return false;
  const auto state = read_state(process.pid);
  if (!state) return kill(process.pid, 0) != 0 && errno == ESRCH;
  // The first thread of a process may end before the others do.
  const bool zombie = (state->state == 'Z' && state->threads <= 1) || state->state == 'X';
  return zombie || (process.start != 0 && state->start != 0 && state->start != process.start);
}

}  // namespace bubblesim::capture

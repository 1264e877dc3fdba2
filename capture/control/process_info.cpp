#include "capture/control/process_info.hpp"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>

#include "sim/base/input_file.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

template <class T>
std::vector<T> numbers(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<T>(words), std::istream_iterator<T>()};
}

// Every process's parent.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  std::error_code fault;
  for (fs::directory_iterator entry("/proc", fault), end; !fault && entry != end;
       entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto info = process_info(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
    if (info) found[info->pid] = info->parent;
  }
  return found;
}

}  // namespace

std::optional<ProcessInfo> process_info(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const auto status = read_text_file(proc(pid, "status"));
  if (!status) return std::nullopt;
  ProcessInfo info;
  info.pid = pid;
  std::istringstream words(*status);
  for (std::string line; std::getline(words, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon);
    const std::string value = line.substr(colon + 1);
    if (key == "Name") info.name = value.substr(std::min<std::size_t>(1, value.size()));
    if (key == "PPid") info.parent = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
    if (key == "State" && value.find_first_of("ZX") == 1) return std::nullopt;
    if (key == "Uid") {
      const auto users = numbers<uid_t>(value);
      if (users.size() > 1) info.user = users[1];
    }
    if (key == "NSpid") {
      info.inner = numbers<pid_t>(value);
      if (!info.inner.empty()) info.inner.erase(info.inner.begin());
    }
  }
  return info;
}

RecorderTrace recorder_trace(pid_t pid) {
  const auto maps = read_text_file(proc(pid, "maps"));
  const auto environment = read_text_file(proc(pid, "environ"));
  if (maps && maps->find(kRecorderLibrary) != std::string::npos) return RecorderTrace::kLoaded;
  // Empty while the process is starting.
  if (!environment || environment->empty()) return RecorderTrace::kUnknown;
  std::istringstream variables(*environment);
  for (std::string variable; std::getline(variables, variable, '\0');) {
    if (variable.starts_with("CUDA_INJECTION64_PATH=") && variable.ends_with(kRecorderLibrary)) {
      return RecorderTrace::kOnlyAsked;
    }
  }
  return RecorderTrace::kNone;
}

std::vector<pid_t> descendants(pid_t pid) {
  const std::map<pid_t, pid_t> tree = parents();
  std::vector<pid_t> found;
  for (const auto& [child, parent] : tree) {
    // The loop is bounded: parents change while they are read, so that they may form a ring.
    pid_t above = parent;
    for (std::size_t steps = 0; above != pid && above > 0 && steps < tree.size(); ++steps) {
      const auto next = tree.find(above);
      above = next == tree.end() ? 0 : next->second;
    }
    if (above == pid && child != pid) found.push_back(child);
  }
  return found;
}

std::string user_text(uid_t user) {
  std::array<char, 4096> space;
  passwd entry{};
  passwd* found = nullptr;
  const std::string number = std::to_string(user);
  if (getpwuid_r(user, &entry, space.data(), space.size(), &found) != 0 || found == nullptr) {
    return number;
  }
  return std::string(entry.pw_name) + " (" + number + ")";
}

}  // namespace bubblesim::capture

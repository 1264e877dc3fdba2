#include "sim/app/app.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <algorithm>
#include <sstream>
#include <thread>
#include <string_view>

#include "sim/base/escape_controls.hpp"
#include "sim/base/output_file.hpp"

namespace bubblesim::app {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::string line = text.substr(0, 78);
  const std::size_t used = line.size();
  if (used < width_) line.append(width_ - used, ' ');
  width_ = used;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!terminal_ || width_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  std::fflush(stderr);
  width_ = 0;
}

run::ProgressText ProgressLine::callback() {
  return [this](const std::string& text) { show(text); };
}

int report_faults(const Errors& faults) {
  for (const Error& fault : faults) {
    std::fprintf(stderr, "bubblesim: %s\n", escape_but_lines(fault.text()).c_str());
  }
  return kExitInputFault;
}

int report_fault(const Error& fault) { return report_faults({fault}); }

int reported(const ExitCode& done) { return done ? *done : report_faults(done.error()); }

int with_standard_output(int code) {
  std::cout.flush();
  const int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (std::ferror(stdout) == 0) return code;
  const std::string why = reason == 0 ? "" : std::string(": ") + std::strerror(reason);
  report_fault({"standard output", {}, "could not be written whole" + why});
  return code == kExitOk ? kExitInputFault : code;
}

Result<void> make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return {};
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) return fail(folder.string(), {}, "cannot be made: " + fault.message());
  return {};
}

Result<void> write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(path));
  return write_whole_file(path, text);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::size_t threads_of(std::size_t asked) {
  return asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

}  // namespace bubblesim::app

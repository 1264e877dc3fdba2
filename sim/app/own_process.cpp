#include "sim/app/own_process.hpp"

#include <unistd.h>

#include <filesystem>

namespace bubblesim::app {
namespace {

namespace fs = std::filesystem;

// From the program's folder: installed, then in a build tree.
constexpr const char* kHelperPlaces[] = {".", "../libexec/bubblesim",
                                         "../../capture/replay/process"};

}  // namespace

Variables inherited_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

std::string temporary_folder() {
  std::error_code code;
  return fs::temp_directory_path(code).string();
}

std::string program_folder() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code).parent_path().string();
}

Result<std::string> find_helper_program(const std::string& name) {
  std::string places;
  for (const char* place : kHelperPlaces) {
    const fs::path folder = (fs::path(program_folder()) / place).lexically_normal();
    const std::string path = (folder / name).string();
    if (::access(path.c_str(), X_OK) == 0) return path;
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  return fail(name, {}, "is in none of " + places);
}

}  // namespace bubblesim::app

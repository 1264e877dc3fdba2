#include "capture/control/job_environment.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include "capture/control/process_info.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaInjection = "CUDA_INJECTION64_PATH";
constexpr const char* kNvtxInjection = "NVTX_INJECTION64_PATH";
constexpr const char* kNcclProfiler = "NCCL_PROFILER_PLUGIN";

// From the program's folder; the last two where libraries have an architecture.
constexpr std::array kPlaces{"../lib", "../lib64", "../lib/x86_64-linux-gnu",
                             "../lib/aarch64-linux-gnu"};

Result<void> check_shared_object(const std::string& path, const WantedLibrary& library) {
  const std::string expected = "expected " + library.what;
  std::error_code fault;
  if (!fs::exists(path, fault)) return fail(path, {}, "found no such file; " + expected);
  if (!fs::is_regular_file(path, fault)) {
    return fail(path, {}, "found no file; " + expected + ", " + library.file);
  }
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path, {}, "cannot be read");
  file.read(magic.data(), magic.size());
  if (!file || magic != std::array<char, 4>{'\x7f', 'E', 'L', 'F'}) {
    return fail(path, {}, "found a file that is no shared object; " + expected + ", " +
                              library.file);
  }
  return {};
}

bool is_ours(const std::string& path) {
  return fs::path(path).filename().string() == kRecorderLibrary;
}

// Sets the variable to our library, unless it already names another library.
bool take(Variables& variables, const char* name, const std::string& library) {
  std::string& value = variables[name];
  if (!value.empty() && value != library && !is_ours(value)) return false;
  value = library;
  return true;
}

void set_request(Variables& variables, const JobSettings& settings) {
  // Variables of an earlier recording, left in an outer shell, must not mix with this one's.
  std::erase_if(variables, [](const auto& variable) {
    return variable.first.starts_with("BUBBLESIM_CAPTURE_") && variable.first != kEnvOnly &&
           variable.first != kEnvSocketFolder && variable.first != kEnvCupti;
  });
  if (!settings.request) return;
  for (auto& [name, value] : environment_of(*settings.request)) variables[name] = value;
}

}  // namespace

Result<std::string> find_library(const std::string& program_folder, const std::string& wanted,
                                 const WantedLibrary& library) {
  std::error_code fault;
  if (!wanted.empty()) {
    const std::string path = fs::absolute(wanted, fault).lexically_normal().string();
    BUBBLESIM_RETURN_IF_ERROR(check_shared_object(path, library));
    return path;
  }
  std::vector<std::string> candidates(kPlaces.begin(), kPlaces.end());
  candidates.push_back("../../" + library.build_folder);
  candidates.push_back(".");
  std::string places;
  for (const std::string& place : candidates) {
    const fs::path folder = (fs::path(program_folder) / place).lexically_normal();
    const std::string path = (folder / library.file).string();
    if (fs::exists(path, fault)) {
      BUBBLESIM_RETURN_IF_ERROR(check_shared_object(path, library));
      return path;
    }
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  return fail(library.file, {}, "is in none of " + places + "; name it with --library");
}

WantedLibrary recorder_library() {
  return {kRecorderLibrary, "the recorder", "capture/record/process"};
}

Result<JobEnvironment> job_environment(const Variables& inherited, const JobSettings& settings) {
  JobEnvironment made;
  made.variables = inherited;
  if (!take(made.variables, kCudaInjection, settings.library)) {
    return fail(kCudaInjection, {},
                "found " + quote_found(made.variables[kCudaInjection]) + ", the library of another "
                "tool; CUDA loads one. Unset it, or record with that tool and import what it "
                "writes");
  }
  if (!take(made.variables, kNvtxInjection, settings.library)) {
    made.notes.push_back(std::string(kNvtxInjection) + " is left to " +
                         quote_found(made.variables[kNvtxInjection]) +
                         ": NVTX ranges, and iterations marked by them, are not recorded");
  }
  if (!take(made.variables, kNcclProfiler, settings.library)) {
    made.notes.push_back(std::string(kNcclProfiler) + " is left to " +
                         quote_found(made.variables[kNcclProfiler]) +
                         ": sizes of collectives are recorded only as far as NVTX tells them");
  }
  set_request(made.variables, settings);
  if (!settings.socket_folder.empty()) made.variables[kEnvSocketFolder] = settings.socket_folder;
  if (!settings.only.empty()) made.variables[kEnvOnly] = settings.only;
  return made;
}

}  // namespace bubblesim::capture

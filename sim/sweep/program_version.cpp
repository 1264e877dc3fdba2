#include "sim/sweep/program_version.hpp"

#include <dlfcn.h>

#include <bubblesim_commit.hpp>  // made by the build: scripts/cmake/program_version.cmake
#include "sim/sweep/content_hash.hpp"

namespace bubblesim::sweep {
namespace {

// The file that this code runs from: a shared object (the Python module), else the program.
std::string own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && info.dli_fname != nullptr) {
    const std::string name = info.dli_fname;
    if (name.find(".so") != std::string::npos) return name;
  }
  return "/proc/self/exe";
}

}  // namespace

std::string program_version() {
  std::string version = std::string(BUBBLESIM_VERSION) + "+" + BUBBLESIM_COMMIT;
  if (*BUBBLESIM_COMMIT != '\0' && BUBBLESIM_CHANGED == 0) return version;
  FileHashes files;
  const auto hash = files.hash(own_file());
  if (*BUBBLESIM_COMMIT != '\0') version += ".changed.";
  return version + (hash ? hash->substr(0, 16) : "unknown");
}

Result<std::string> version_with_libraries(const std::set<std::string>& libraries) {
  std::string version = program_version();
  FileHashes files;
  for (const std::string& library : libraries) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string hash, files.hash(library));
    version += ".policies-" + hash.substr(0, 16);
  }
  return version;
}

}  // namespace bubblesim::sweep

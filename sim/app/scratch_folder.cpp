#include "sim/app/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace bubblesim::app {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make(const std::string& purpose) {
  std::error_code fault;
  const std::string name = "bubblesim-" + purpose + "-XXXXXX";
  std::string path = (fs::temp_directory_path(fault) / name).string();
  if (fault) return fail(path, {}, "is not in a folder for such: " + fault.message());
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(path, {}, std::string("cannot be made: ") + std::strerror(errno));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what stays is in the system's folder for such
  fs::remove_all(path_, ignored);
}

}  // namespace bubblesim::app

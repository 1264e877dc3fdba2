#include "sim/base/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace bubblesim {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make(const std::string& parent,
                                                           const std::string& purpose) {
  std::string path = (fs::path(parent) / ("bubblesim-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(parent, {}, std::string("no folder can be made in it: ") + std::strerror(errno));
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // what stays is where such things are swept up
  fs::remove_all(path_, ignored);
}

}  // namespace bubblesim

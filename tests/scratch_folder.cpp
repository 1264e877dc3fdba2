// Every test program is linked with this file. CTest runs cases of one program side by side, so
// each process has a folder of its own as testing::TempDir(), removed when the process ends.
#include <filesystem>
#include <stdlib.h>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace bubblesim::testing {
namespace {

class ScratchFolder {
 public:
  ScratchFolder() {
    const char* given = ::getenv("TMPDIR");
    path_ = std::string(given != nullptr ? given : "/tmp") + "/bubblesim-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) return;
    ::chmod(path_.c_str(), 0755);  // tests that give up root's rights still read there
    ::setenv("TEST_TMPDIR", path_.c_str(), 1);
    owner_ = ::getpid();
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    if (owner_ != ::getpid()) return;  // a forked child
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
  pid_t owner_ = 0;
};

const ScratchFolder scratch_folder;

}  // namespace
}  // namespace bubblesim::testing

#include "capture/record/process/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace bubblesim::capture {
namespace {

constexpr int kMostAttempts = 1000;
constexpr const char* kGrowing = ".recording.btr";
constexpr const char* kWhole = ".btr";

std::string reason() { return std::strerror(errno); }

/// Renames unless the new name exists. If the file system cannot do that in one step (old NFS),
/// makes a link, which fails if the name exists.
int rename_to_free(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST || ::access(to.c_str(), F_OK) == 0) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::string RecordingFile::name(int attempt, const char* ending) const {
  if (attempt == 0) return stem_ + ending;
  const std::string with_pid = stem_ + ".pid" + std::to_string(pid_);
  return with_pid + (attempt == 1 ? "" : "." + std::to_string(attempt)) + ending;
}

Result<RecordingFile> RecordingFile::claim(const std::string& output, std::uint32_t rank,
                                     std::int64_t pid, Readers readers) {
  const mode_t rights = readers == Readers::kAll ? 0644 : 0600;
  const bool is_file = output.ends_with(kWhole);
  const std::filesystem::path folder =
      is_file ? std::filesystem::path(output).parent_path() : std::filesystem::path(output);
  std::error_code fault;
  if (!folder.empty()) std::filesystem::create_directories(folder, fault);
  if (fault) return fail(folder.string(), {}, "cannot make the folder: " + fault.message());
  RecordingFile made(is_file ? output.substr(0, output.size() - std::strlen(kWhole))
                          : (folder / ("rank" + std::to_string(rank))).string(),
                  pid);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    made.path_ = made.name(attempt, kGrowing);
    const int file = ::open(made.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, rights);
    if (file >= 0) {
      ::close(file);
      return made;
    }
    if (errno != EEXIST) break;
  }
  return fail(made.path_, {}, "cannot make the file: " + reason());
}

Result<void> RecordingFile::complete() {
  int fault = EEXIST;
  for (int attempt = 0; attempt < kMostAttempts && fault == EEXIST; ++attempt) {
    std::string final_name = name(attempt, kWhole);
    fault = rename_to_free(path_, final_name);
    if (fault != 0) continue;
    path_ = std::move(final_name);
    return {};
  }
  return fail(path_, {}, std::string("cannot rename to ") + stem_ + kWhole + ": " +
                             std::strerror(fault));
}

void RecordingFile::discard() noexcept { ::unlink(path_.c_str()); }

}  // namespace bubblesim::capture

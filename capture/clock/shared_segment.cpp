#include "capture/clock/shared_segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

namespace bubblesim::capture {
namespace {

namespace ipc = boost::interprocess;

/// Most names that are tried: killed processes with this process number leave segments.
constexpr int kMostNames = 10'000;

/// Longest time for which a process has made a segment and not locked it yet.
constexpr auto kYoung = std::chrono::minutes(1);

/// Held by the process that made the segment, while it lives: nobody else removes the segment.
bool lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }

bool is_stale(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  struct stat state {};
  const bool is_own = ::fstat(file, &state) == 0 && state.st_uid == ::geteuid();
  const auto age = std::chrono::seconds(::time(nullptr) - state.st_mtime);
  const bool stale = is_own && age > kYoung && lock(file);
  ::close(file);
  return stale;
}

class BoostSegment final : public SharedSegment {
 public:
  /// Only the maker keeps `object`, with its lock.
  BoostSegment(std::string name, ipc::mapped_region region, pid_t owner,
               ipc::shared_memory_object object = {})
      : name_(std::move(name)),
        region_(std::move(region)),
        owner_(owner),
        object_(std::move(object)) {}
  // A forked child has this object, too, and must not remove the name.
  ~BoostSegment() override {
    if (owner_ == getpid()) ipc::shared_memory_object::remove(name_.c_str());
  }
  void* address() const override { return region_.get_address(); }
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  ipc::mapped_region region_;
  pid_t owner_;  ///< 0: nobody here
  ipc::shared_memory_object object_;
};

std::string next_name(const std::string& prefix) {
  static std::atomic<std::uint32_t> made{0};
  return prefix + "." + std::to_string(getpid()) + "." + std::to_string(made++);
}

}  // namespace

Result<std::unique_ptr<SharedSegment>> SharedSegment::make(const std::string& prefix,
                                                           std::size_t bytes) {
  sweep(prefix + ".");
  const ipc::permissions only_owner(0600);
  std::string reason;
  for (int tries = 0; tries < kMostNames; ++tries) {
    const std::string name = next_name(prefix);
    try {
      ipc::shared_memory_object object(ipc::create_only, name.c_str(), ipc::read_write, only_owner);
      lock(object.get_mapping_handle().handle);
      // Allocates the memory: without room a later write would kill the process (SIGBUS).
      if (const int fault = ::posix_fallocate(object.get_mapping_handle().handle, 0,
                                              static_cast<off_t>(bytes))) {
        reason = std::strerror(fault);
        ipc::shared_memory_object::remove(name.c_str());
        break;
      }
      ipc::mapped_region region(object, ipc::read_write);
      return std::make_unique<BoostSegment>(name, std::move(region), getpid(), std::move(object));
    } catch (const ipc::interprocess_exception& fault) {
      reason = fault.what();
      if (fault.get_error_code() == ipc::already_exists_error) continue;
      ipc::shared_memory_object::remove(name.c_str());
      break;
    }
  }
  return fail("cannot make shared memory of " + std::to_string(bytes) + " bytes: " + reason);
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::open(const std::string& name,
                                                           std::size_t bytes,
                                                           const std::string& what) {
  try {
    ipc::shared_memory_object object(ipc::open_only, name.c_str(), ipc::read_write);
    ipc::offset_t size = 0;
    if (!object.get_size(size) || static_cast<std::size_t>(size) < bytes) {
      return fail("\"" + name + "\" is no " + what + " of this version: it has " +
                  std::to_string(size) + " bytes, expected " + std::to_string(bytes));
    }
    ipc::mapped_region region(object, ipc::read_write, 0, bytes);
    return std::make_unique<BoostSegment>(name, std::move(region), pid_t{0});
  } catch (const ipc::interprocess_exception& fault) {
    return fail("there is no " + what + " \"" + name + "\": " + fault.what());
  }
}

void SharedSegment::sweep(const std::string& beginning, const std::string& folder) {
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(folder, fault)) {
    if (!entry.path().filename().string().starts_with(beginning)) continue;
    if (is_stale(entry.path())) ::unlink(entry.path().c_str());
  }
}

}  // namespace bubblesim::capture

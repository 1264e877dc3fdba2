// What the system says of a process: its user, the libraries loaded into it. Linux: /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace bubblesim::capture {

/// File name of the shared object that jobs load.
inline constexpr const char* kRecorderLibrary = "libbubblesim_capture.so";

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  uid_t user = 0;               ///< effective
  std::string name;             ///< name of its program, at most 15 bytes
  std::vector<pid_t> inner;     ///< its pids in the namespaces inside ours, outermost first
};

/// Nothing if there is no such process, or if it is a zombie.
[[nodiscard]] std::optional<ProcessInfo> process_info(pid_t pid);

/// What is known of the recorder in a process; kUnknown: the system does not say.
enum class RecorderTrace {
  kUnknown,
  kLoaded,      ///< the library is mapped
  kOnlyAsked,   ///< the environment names it, but it is not loaded: CUDA was not initialised
  kNone,
};
[[nodiscard]] RecorderTrace recorder_trace(pid_t pid);

/// `pid`'s children, their children and so on, without itself; in rising order.
[[nodiscard]] std::vector<pid_t> descendants(pid_t pid);

/// "alice (1001)", or "1001" where the user has no name.
[[nodiscard]] std::string user_text(uid_t user);

}  // namespace bubblesim::capture

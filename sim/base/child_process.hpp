// Child processes: the one place that starts programs and reaps them.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim {

/// Environment variables by name.
using Variables = std::map<std::string, std::string>;

inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct ChildEnd {
  int exit_code = 0;  ///< as shells give it: 128 + n where signal n ended the child
  int signal = 0;     ///< 0: it exited
};

/// A command that could not be started: `exit_code` is 127 or 126.
struct StartFault {
  Error error;
  int exit_code = kExitNotFound;
};

/// The child's process group. A child in its parent's group gets the terminal's signals, too.
enum class ChildGroup { kOfParent, kOwn, kOwnSession };

inline constexpr int kInherited = -1;  ///< the parent's stream
inline constexpr int kNothing = -2;    ///< /dev/null

struct ChildSettings {
  std::optional<sigset_t> mask;  ///< the child's signal mask; none: as the calling thread's
  ChildGroup group = ChildGroup::kOfParent;
  int input = kInherited;   ///< a descriptor, kInherited or kNothing
  int output = kInherited;  ///< as `input`
  int error = kInherited;   ///< as `input`
};

/// `command` is not empty; its first word is looked for in PATH unless it has a slash.
[[nodiscard]] tl::expected<pid_t, StartFault> start_child(const std::vector<std::string>& command,
                                                          const Variables& environment,
                                                          const ChildSettings& settings);

/// `pid` is a child of this process. Nothing while it runs; a second call after its end gives exit
/// code 1.
[[nodiscard]] std::optional<ChildEnd> reap_child(pid_t pid);

}  // namespace bubblesim

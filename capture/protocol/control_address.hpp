// The addresses at which the recorder of a process listens: an abstract SOCK_SEQPACKET socket
// "\0bubblesim.<uid>.<pid>", and, if BUBBLESIM_CAPTURE_SOCKETS names a folder, the path
// <folder>/bubblesim.<uid>.<pid>.sock. <uid> is the effective user of the recorded process.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::capture {

struct ControlAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  std::string text;  ///< for messages; '@' stands for the leading zero byte
};

[[nodiscard]] ControlAddress abstract_address(uid_t user, pid_t process);
/// Faults: a folder whose name is too long for a socket's path (107 bytes in all).
[[nodiscard]] Result<ControlAddress> path_address(std::string_view folder, uid_t user,
                                                  pid_t process);

}  // namespace bubblesim::capture

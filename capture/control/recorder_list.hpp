// Which recorders listen on this machine: from /proc/net/unix (abstract sockets of this network
// namespace) and from a folder of path sockets.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "capture/protocol/control_address.hpp"

namespace bubblesim::capture {

struct ListedRecorder {
  uid_t user = 0;  ///< as its name says
  pid_t pid = 0;   ///< as its name says: in a container, the container's
  ControlAddress address;
};

/// Lists recorders by pid, abstract sockets first. `folder`: of path sockets; empty: none. A file
/// without a listener is listed too: only connecting tells.
[[nodiscard]] std::vector<ListedRecorder> list_recorders(const std::string& folder);

/// Parts of the above: the text of /proc/net/unix.
[[nodiscard]] std::vector<ListedRecorder> listed_in(std::string_view proc_net_unix);

}  // namespace bubblesim::capture

#include "capture/protocol/control_address.hpp"

#include <algorithm>
#include <cstddef>

namespace bubblesim::capture {
namespace {

std::string name_of(uid_t user, pid_t process) {
  return "bubblesim." + std::to_string(user) + "." + std::to_string(process);
}

}  // namespace

ControlAddress abstract_address(uid_t user, pid_t process) {
  const std::string name = name_of(user, process);
  ControlAddress made;
  made.address.sun_family = AF_UNIX;
  // sun_path[0] stays zero: that is what makes it abstract. No zero byte ends the name.
  std::copy(name.begin(), name.end(), made.address.sun_path + 1);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  made.text = "@" + name;
  return made;
}

Result<ControlAddress> path_address(std::string_view folder, uid_t user, pid_t process) {
  ControlAddress made;
  made.text = std::string(folder) + (folder.ends_with('/') ? "" : "/") + name_of(user, process) +
              ".sock";
  constexpr std::size_t longest = sizeof(made.address.sun_path) - 1;
  if (folder.empty() || folder.find('\0') != std::string_view::npos) {
    return fail("found no name; expected a folder for sockets");
  }
  if (made.text.size() > longest) {
    return fail(made.text, {},
                "found a path of " + std::to_string(made.text.size()) + " bytes; a socket's has "
                "at most " + std::to_string(longest) + ": choose a folder with a shorter name");
  }
  made.address.sun_family = AF_UNIX;
  std::copy(made.text.begin(), made.text.end(), made.address.sun_path);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + made.text.size() + 1);
  return made;
}

}  // namespace bubblesim::capture

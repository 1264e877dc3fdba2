#include "capture/control/recorder_list.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "sim/base/input_file.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "bubblesim.";
constexpr std::string_view kSuffix = ".sock";
constexpr unsigned long kListening = 0x10000;  // __SO_ACCEPTCON of the kernel

struct Owner {
  uid_t user;
  pid_t pid;
};

// "bubblesim.<uid>.<pid>"
std::optional<Owner> owner_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto user = parse_number<uid_t>(name.substr(0, dot));
  const auto pid = parse_number<pid_t>(name.substr(dot + 1));
  if (!user || !pid || *pid <= 0) return std::nullopt;
  return Owner{*user, *pid};
}

}  // namespace

std::vector<ListedRecorder> listed_in(std::string_view proc_net_unix) {
  std::vector<ListedRecorder> found;
  std::istringstream words{std::string(proc_net_unix)};
  for (std::string line; std::getline(words, line);) {
    // Num RefCount Protocol Flags Type St Inode Path
    std::istringstream fields(line);
    std::string field[8];
    for (std::string& text : field) fields >> text;
    if (!field[7].starts_with('@')) continue;
    if ((std::strtoul(field[3].c_str(), nullptr, 16) & kListening) == 0) continue;
    const auto owner = owner_of(std::string_view(field[7]).substr(1));
    if (!owner) continue;
    found.push_back({owner->user, owner->pid, abstract_address(owner->user, owner->pid)});
  }
  return found;
}

std::vector<ListedRecorder> list_recorders(const std::string& folder) {
  const std::string sockets = read_text_file("/proc/net/unix").value_or(std::string());
  std::vector<ListedRecorder> found = listed_in(sockets);
  std::error_code fault;
  if (!folder.empty()) {
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end;
         entry.increment(fault)) {
      const std::string name = entry->path().filename().string();
      if (!name.ends_with(kSuffix)) continue;
      const auto owner = owner_of(name.substr(0, name.size() - kSuffix.size()));
      if (!owner) continue;
      auto address = path_address(folder, owner->user, owner->pid);
      if (address) found.push_back({owner->user, owner->pid, std::move(*address)});
    }
  }
  std::sort(found.begin(), found.end(), [](const ListedRecorder& a, const ListedRecorder& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.address.text < b.address.text;
  });
  return found;
}

}  // namespace bubblesim::capture

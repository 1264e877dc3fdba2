#include "capture/control/recorder_client.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "capture/control/process_info.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/units.hpp"

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

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string process_text(pid_t pid) { return "process " + std::to_string(pid); }

std::string system_text(int code) { return std::strerror(code); }

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A connection, or the reason why there is none. `code`: errno; 0 if `socket` is good.
struct Connection {
  Socket socket{-1};
  int code = 0;
};

Connection connect_to(const ControlAddress& to, Clock::time_point deadline) {
  Connection made{Socket(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  if (made.socket.get() < 0) {
    made.code = errno;
    return made;
  }
  // EAGAIN: the recorder's queue of connections is full; no event tells when it has room.
  for (;;) {
    if (connect(made.socket.get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) ==
        0) {
      made.code = 0;
      return made;
    }
    made.code = errno;
    if (made.code != EAGAIN && made.code != EINTR) return made;
    if (Clock::now() >= deadline) return made;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

constexpr uid_t kNobody = ~uid_t{0};

bool nobody_listens(int code) { return code == ECONNREFUSED || code == ENOENT; }

ucred peer_of(const Socket& socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known ? peer : ucred{0, kNobody, 0};
}

bool is_abstract(const ControlAddress& address) { return address.text.starts_with('@'); }

// Any process may take an abstract name, or make a socket in a folder that many can write to: only
// the right process is trusted.
Result<void> check_peer(const Socket& socket, const ListedRecorder& recorder) {
  const ucred peer = peer_of(socket);
  const uid_t own = geteuid();
  const bool right_pid = peer.pid == 0 || peer.pid == recorder.pid || [&] {
    const auto info = process_info(peer.pid);
    return info && std::count(info->inner.begin(), info->inner.end(), recorder.pid) > 0;
  }();
  if (right_pid && (peer.uid == own || own == 0 || peer.uid == 0)) return {};
  return fail(recorder.address.text, {},
              "is held by process " + std::to_string(peer.pid) + " of user " +
                  user_text(peer.uid) + ", not by the recorder of " + process_text(recorder.pid));
}

// Waits for `events`; false when the time is up.
bool wait_for(const Socket& socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left < 0) return false;
    pollfd waited{socket.get(), events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

Result<std::string> exchange(const Socket& socket, const std::string& message, const Error& silent,
                             Clock::time_point deadline) {
  const std::string& file = silent.file;
  if (!wait_for(socket, POLLOUT, deadline)) return tl::make_unexpected(silent);
  if (send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_EOR) < 0) {
    return fail(file, {}, "takes no command: " + system_text(errno));
  }
  if (!wait_for(socket, POLLIN, deadline)) return tl::make_unexpected(silent);
  std::string answer(kMaxMessageBytes + 1, '\0');
  const ssize_t length = recv(socket.get(), answer.data(), answer.size(), 0);
  if (length < 0) return fail(file, {}, "gives no answer: " + system_text(errno));
  if (length == 0) {
    return fail(file, {}, "closed the connection without an answer: the process ended, or its "
                         "recorder refused us");
  }
  answer.resize(static_cast<std::size_t>(length));
  return answer;
}

std::string how_to_have_one() {
  return "; a process must be started with it: bubblesim capture --idle -- COMMAND";
}

// Children of a launcher such as torchrun that do have a recorder.
std::string children_text(pid_t pid, const std::vector<ListedRecorder>& listed) {
  std::string text;
  for (const pid_t child : descendants(pid)) {
    for (const ListedRecorder& recorder : listed) {
      if (recorder.pid == child) text += (text.empty() ? "" : ", ") + std::to_string(child);
    }
  }
  return text.empty() ? text : "; of its children these have one: " + text;
}

Error no_recorder(const ProcessInfo& process, const std::vector<ListedRecorder>& listed) {
  const std::string process_name = process_text(process.pid) + " (" + process.name + ")";
  const std::string children = children_text(process.pid, listed);
  switch (recorder_trace(process.pid)) {
    case RecorderTrace::kLoaded:
      return {process_name,
              {},
              "has the recorder loaded, but nothing listens: it was forked from a "
              "recorded process, or BUBBLESIM_CAPTURE_ONLY leaves it out, or its sockets "
              "are in a folder or another network namespace (a container: --sockets)" +
                  children};
    case RecorderTrace::kOnlyAsked:
      return {process_name,
              {},
              "was started with the recorder, but has not initialised CUDA: there is "
              "nothing to record yet" +
                  children};
    case RecorderTrace::kNone:
    case RecorderTrace::kUnknown: break;
  }
  return {process_name, {}, "has no recorder" + (children.empty() ? how_to_have_one() : children)};
}

Result<void> check_owner(const ProcessInfo& process) {
  const uid_t own = geteuid();
  if (own == 0 || own == process.user) return {};
  return fail(process_text(process.pid), {},
              "belongs to user " + user_text(process.user) + "; only that user and root may "
              "control its recorder, and you are " + user_text(own));
}

// Names under which the recorder of `pid` may listen. Those in the folder that was asked for come
// first: there an id is a container's, whichever process has this id on the machine.
std::vector<ListedRecorder> candidates(pid_t pid, const std::optional<ProcessInfo>& process,
                                       const std::vector<ListedRecorder>& listed) {
  std::vector<ListedRecorder> found;
  for (const ListedRecorder& recorder : listed) {
    const bool inner =
        process && std::count(process->inner.begin(), process->inner.end(), recorder.pid) > 0;
    if (recorder.pid == pid || inner) found.push_back(recorder);
  }
  // The name is known also if /proc/net/unix cannot be read.
  if (process) found.push_back({process->user, pid, abstract_address(process->user, pid)});
  std::stable_partition(found.begin(), found.end(), [](const ListedRecorder& recorder) {
    return !is_abstract(recorder.address);
  });
  return found;
}

}  // namespace

RecorderClient::RecorderClient(ListedRecorder recorder, const ClientOptions& options)
    : recorder_(std::move(recorder)), options_(options) {}

Result<RecorderClient> RecorderClient::find(pid_t pid, const ClientOptions& options) {
  const auto process = process_info(pid);
  const auto listed = list_recorders(options.socket_folder);
  const auto names = candidates(pid, process, listed);
  const auto deadline = Clock::now() + options.timeout;
  for (const ListedRecorder& recorder : names) {
    if (process && is_abstract(recorder.address)) BUBBLESIM_RETURN_IF_ERROR(check_owner(*process));
    const Connection made = connect_to(recorder.address, deadline);
    if (made.code == 0) {
      BUBBLESIM_RETURN_IF_ERROR(check_peer(made.socket, recorder));
      return RecorderClient({peer_of(made.socket).uid, recorder.pid, recorder.address}, options);
    }
    if (made.code == EAGAIN) {  // ask() reports what to do
      return RecorderClient({kNobody, recorder.pid, recorder.address}, options);
    }
    if (!nobody_listens(made.code)) {
      return fail(recorder.address.text, {}, "cannot be reached: " + system_text(made.code));
    }
  }
  if (!process) return fail(process_text(pid), {}, "does not exist (any more)");
  return tl::make_unexpected(no_recorder(*process, listed));
}

Result<RecorderStatus> RecorderClient::ask(const ControlCommand& command) const {
  const std::string process_name = process_text(recorder_.pid);
  const std::string message = encode(command);
  if (message.size() > kMaxMessageBytes) return fail(process_name, {}, "the command is too long");
  const auto deadline = Clock::now() + options_.timeout;
  const Error silent{process_name, {}, "its recorder gives no answer in " +
                                  format_duration(options_.timeout) +
                                  ": the process is stopped or very busy"};
  const Connection made = connect_to(recorder_.address, deadline);
  if (made.code == EAGAIN) return tl::make_unexpected(silent);
  if (nobody_listens(made.code)) return fail(process_name, {}, "ended, or its recorder did");
  if (made.code != 0) return fail(process_name, {}, "cannot be reached: " + system_text(made.code));
  BUBBLESIM_RETURN_IF_ERROR(check_peer(made.socket, recorder_));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string answer,
                             exchange(made.socket, message, silent, deadline));
  auto status = decode_status(answer);
  if (!status) {
    return fail(process_name, {},
                "its recorder's answer cannot be read (another version of bubblesim?): " +
                    status.error().text() + "; it was " + quote_found(answer));
  }
  // A refused client gets a status without a process, with the reason.
  if (status->pid == 0) {
    return fail(process_name, {}, "its recorder says: " +
                             (status->message.empty() ? "nothing of itself" : status->message));
  }
  return status;
}

RecorderSurvey survey_recorders(const ClientOptions& options) {
  RecorderSurvey survey;
  const uid_t own = geteuid();
  std::set<std::pair<std::int64_t, std::string>> seen;
  for (const ListedRecorder& recorder : list_recorders(options.socket_folder)) {
    if (own != 0 && recorder.user != own) continue;
    const Connection made = connect_to(recorder.address, Clock::now() + options.timeout);
    if (nobody_listens(made.code)) continue;  // a file that a killed process left
    auto status = RecorderClient(recorder, options).ask(status_command());
    if (!status) {
      survey.faults.push_back(status.error());
    } else if (seen.emplace(status->pid, status->executable + '\n' + status->output).second) {
      survey.recorders.push_back(std::move(*status));
    }
  }
  return survey;
}

namespace {

// A span for people to read: "12.34 s".
std::string seconds_text(Duration span) {
  return format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(span));
}

}  // namespace

RecorderWatch::RecorderWatch(pid_t job, std::string output, std::string socket_folder)
    : job_(job), output_(std::move(output)) {
  // Short: a slow recorder must not delay the wait for the job.
  options_.timeout = std::chrono::milliseconds(200);
  options_.socket_folder = std::move(socket_folder);
}

void RecorderWatch::look() {
  const auto listed = list_recorders(options_.socket_folder);
  if (listed.empty()) return;
  std::set<pid_t> family{job_};
  for (const pid_t pid : descendants(job_)) family.insert(pid);
  const uid_t own = geteuid();
  for (const ListedRecorder& recorder : listed) {
    const bool related = family.contains(recorder.pid) || !recorder.address.text.starts_with('@');
    if (!related || (own != 0 && recorder.user != own)) continue;
    auto status = RecorderClient(recorder, options_).ask(status_command());
    if (!status) continue;
    if (!family.contains(recorder.pid) && !status->output.starts_with(output_ + "/")) continue;
    seen_[status->pid] = std::move(*status);
  }
}

std::string RecorderWatch::progress() const {
  if (seen_.empty()) return {};
  std::size_t recording = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  for (const auto& [pid, status] : seen_) {
    if (status.state == RecorderState::kRecording) ++recording;
    records += status.records;
    bytes += status.bytes;
  }
  return std::to_string(recording) + " of " + std::to_string(seen_.size()) +
         " recording, " + std::to_string(records) + " records, " +
         std::to_string(bytes / 1'000'000) + " MB";
}

DriverState driver_state() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return DriverState::kMissing;
  dlclose(library);
  return DriverState::kFound;
}

std::string why_nothing(const std::map<std::int64_t, RecorderStatus>& seen, DriverState driver,
                        const JobFacts& facts) {
  for (const auto& [pid, status] : seen) {
    if (status.state == RecorderState::kFailed || !status.message.empty()) {
      return "the recorder of process " + std::to_string(pid) + " (" + status.executable +
             ") says: " + (status.message.empty() ? "the start failed" : status.message);
    }
  }
  if (facts.at_a_time || facts.delay >= facts.ran) {
    return "the job ended after " + seconds_text(facts.ran) +
           ", before the recording was to begin";
  }
  if (driver == DriverState::kMissing) {
    return "no NVIDIA driver was found here (libcuda.so.1), without which nothing can use CUDA";
  }
  if (!seen.empty()) {
    return "recorders were there, but nothing ran on the GPU while they recorded; the job ran " +
           seconds_text(facts.ran);
  }
  return "no recorder was seen in the job, which ran " + seconds_text(facts.ran) +
         ": nothing initialised CUDA, or it ended before a recording could begin. A line "
         "\"bubblesim capture: ...\" above would say more";
}

}  // namespace bubblesim::capture

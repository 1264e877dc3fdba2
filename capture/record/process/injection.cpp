// The library's entry into a process: the function that the CUDA driver calls, and the handlers of
// a fork and of the exit. Errors in this file never fail the job.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "capture/protocol/capture_request.hpp"
#include "capture/record/host/host_event.hpp"
#include "capture/record/process/recorder.hpp"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() noexcept;

namespace bubblesim::capture {
namespace {

constexpr std::size_t kEpollSlot = 0;
constexpr std::size_t kAbstractSlot = 1;
constexpr std::size_t kPathSlot = 2;
constexpr std::size_t kFirstPeer = 3;
constexpr useconds_t kNoDescriptorPause = 100'000;

bool may_command(uid_t peer) { return peer == ::geteuid() || peer == 0; }

bool send_answer(int peer, const RecorderStatus& status) {
  const std::string text = encode(status);
  const ssize_t sent = ::send(peer, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(text.size());
}

/// A socket file without a listener: left by a process that was killed.
bool is_stale(const ControlAddress& address) {
  const int probe = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const auto* target = reinterpret_cast<const sockaddr*>(&address.address);
  const bool refused =
      ::connect(probe, target, address.length) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

/// The recorder's end of the control socket: takes commands, answers each with a status.
///
/// Only the process's own user and root are heard (SO_PEERCRED). A peer that does not read its
/// answers, or sends nonsense, is cut off, so that no peer can block the server.
class ControlServer {
 public:
  /// `folder`: for a path socket beside the abstract one; empty: none. `recorder` outlives it.
  ControlServer(Recorder& recorder, std::string folder)
      : recorder_(recorder), folder_(std::move(folder)), buffer_(kMaxMessageBytes, '\0') {
    for (std::atomic<int>& descriptor : descriptors_) descriptor.store(-1);
  }
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer() {
    remove_path();
    close_descriptors();
  }

  /// Listens; true if at least one address is open. If another process has the abstract address
  /// (two containers that share a network but not their process ids) only the path socket listens.
  [[nodiscard]] bool listen() {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return false;
    descriptors_[kEpollSlot].store(epoll);
    bool open = open_listener(kAbstractSlot, abstract_address(::geteuid(), ::getpid()));
    if (folder_.empty()) return open;
    const auto path = path_address(folder_, ::geteuid(), ::getpid());
    if (path && open_listener(kPathSlot, *path)) open = true;
    return open;
  }
  /// Serves until close_descriptors() or a fault of the system.
  void serve() {
    std::array<epoll_event, kSlots> events{};
    for (;;) {
      const int count = ::epoll_wait(descriptors_[kEpollSlot].load(), events.data(),
                                     static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) return;
      for (int i = 0; i < count; ++i) {
        const std::size_t slot = events[static_cast<std::size_t>(i)].data.u64;
        if (slot < kFirstPeer) accept_from(slot);
        else hear(slot);
      }
    }
  }
  /// Removes the path socket's file. Async-signal-safe.
  void remove_path() noexcept {
    if (descriptors_[kPathSlot].load() >= 0) ::unlink(path_.address.sun_path);
  }
  /// Called in a forked child: closes the child's copies of the descriptors. Async-signal-safe.
  void close_descriptors() noexcept {
    for (std::atomic<int>& descriptor : descriptors_) {
      if (const int open = descriptor.exchange(-1); open >= 0) ::close(open);
    }
  }

 private:
  /// Slots of descriptors: the epoll, listeners, peers. Atomic, for a fork may come at any time.
  static constexpr std::size_t kPeers = 16;
  static constexpr std::size_t kListeners = 2;
  static constexpr std::size_t kSlots = 1 + kListeners + kPeers;

  [[nodiscard]] bool open_listener(std::size_t slot, const ControlAddress& address) {
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return false;
    // Before bind: the file appears with these rights.
    if (slot == kPathSlot) ::fchmod(listener, S_IRUSR | S_IWUSR);
    const auto* place = reinterpret_cast<const sockaddr*>(&address.address);
    int done = ::bind(listener, place, address.length);
    if (done != 0 && errno == EADDRINUSE && slot == kPathSlot && is_stale(address)) {
      ::unlink(address.address.sun_path);
      done = ::bind(listener, place, address.length);
    }
    if (done != 0 || ::listen(listener, static_cast<int>(kPeers)) != 0 || !watch(listener, slot)) {
      ::close(listener);
      return false;
    }
    // Before the descriptor: the thread that exits removes the file if there is a descriptor.
    if (slot == kPathSlot) path_ = address;
    descriptors_[slot].store(listener);
    return true;
  }
  [[nodiscard]] bool watch(int descriptor, std::size_t slot) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = slot;
    return ::epoll_ctl(descriptors_[kEpollSlot].load(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  }
  void accept_from(std::size_t listener) {
    const int peer = ::accept4(descriptors_[listener].load(), nullptr, nullptr,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0) {
      // The job has no descriptor left: the peer stays in the queue, and an immediate retry would
      // keep a core busy.
      if (errno == EMFILE || errno == ENFILE) ::usleep(kNoDescriptorPause);
      return;
    }
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    const bool known = ::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
    const std::size_t slot = room_for_peer();
    drop(slot);
    peers_[slot] = {known && may_command(credentials.uid), ++clock_};
    descriptors_[slot].store(peer);
    if (!watch(peer, slot)) drop(slot);
  }
  /// A free slot; else that of a peer that may not command, or of the peer silent for longest.
  [[nodiscard]] std::size_t room_for_peer() const {
    std::size_t victim = kFirstPeer;
    for (std::size_t slot = kFirstPeer; slot < kSlots; ++slot) {
      if (descriptors_[slot].load() < 0) return slot;
      const Peer& peer = peers_[slot];
      const Peer& other = peers_[victim];
      if (peer.allowed != other.allowed ? other.allowed : peer.heard < other.heard) victim = slot;
    }
    return victim;
  }
  void hear(std::size_t slot) {
    const int peer = descriptors_[slot].load();
    if (peer < 0) return;
    const ssize_t length = ::recv(peer, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length <= 0) return drop(slot);
    if (!peers_[slot].allowed) {
      // Only now: if a socket is closed with an unread message in it, its answer is lost, too.
      RecorderStatus refusal;
      refusal.message = "refused: only the user of this process and root may command it";
      (void)send_answer(peer, refusal);
      return drop(slot);
    }
    peers_[slot].heard = ++clock_;
    RecorderStatus status;
    if (static_cast<std::size_t>(length) > buffer_.size()) {
      status = recorder_.status();
      status.message = "found a message of " + std::to_string(length) +
                       " bytes; expected at most " + std::to_string(buffer_.size());
    } else {
      status = answer(std::string_view(buffer_).substr(0, static_cast<std::size_t>(length)));
    }
    if (!send_answer(peer, status)) drop(slot);
  }
  void drop(std::size_t slot) noexcept {
    if (const int open = descriptors_[slot].exchange(-1); open >= 0) ::close(open);
  }
  [[nodiscard]] RecorderStatus answer(std::string_view message) {
    const auto command = decode_command(message);
    if (command) return obey(*command);
    RecorderStatus status = recorder_.status();
    status.message = command.error().text();
    return status;
  }
  [[nodiscard]] RecorderStatus obey(const ControlCommand& command) {
    std::string refusal;
    switch (command.kind) {
      case ControlCommand::Kind::kStart:
        if (auto done = recorder_.start(command.start, StartOrigin::kSocket); !done) {
          refusal = done.error().text();
        }
        break;
      case ControlCommand::Kind::kStop: recorder_.stop(Stop::kAsked); break;
      case ControlCommand::Kind::kMark:
        if (!recorder_.mark(command.mark)) refusal = "nothing is being recorded";
        break;
      case ControlCommand::Kind::kStatus: break;
    }
    RecorderStatus status = recorder_.status();
    if (!refusal.empty()) status.message = refusal;
    return status;
  }

  struct Peer {
    bool allowed = false;
    std::uint64_t heard = 0;  ///< by clock_
  };

  Recorder& recorder_;
  std::string folder_;
  ControlAddress path_;  ///< written before the descriptor of its listener is
  std::array<std::atomic<int>, kSlots> descriptors_;
  std::array<Peer, kSlots> peers_{};
  std::uint64_t clock_ = 0;  ///< counts messages and connections
  std::string buffer_;
};

/// How long the exit of a job may wait for its last records.
constexpr Duration kLongestExit = std::chrono::seconds(10);

/// Made once a process and never destroyed: threads of the job may use it to the last moment.
struct Life {
  Life(RecorderSettings settings, std::string folder)
      : recorder(*new Recorder(std::move(settings))), server(recorder, std::move(folder)) {}
  ~Life() = delete;

  Recorder& recorder;
  ControlServer server;
  Result<std::optional<StartRequest>> request;
};

std::atomic<Life*> life{nullptr};
std::atomic<bool> handlers_set{false};

void at_exit() noexcept {
  Life* const here = life.load();
  if (here == nullptr) return;
  here->recorder.stop(Stop::kExiting);
  if (!here->recorder.wait_idle(kLongestExit)) say("gave up waiting for the last records at exit");
  here->server.remove_path();
}

// The child has this thread only. Inherited objects belong to the parent: they are left as they
// are, locks and all, and forgotten. If the child uses CUDA, it is injected anew.
void in_forked_child() noexcept {
  forget_host_threads();
  Life* const parents = life.exchange(nullptr);
  if (parents == nullptr) return;
  parents->recorder.abandon();
  parents->server.close_descriptors();
}

void control(Life& here) noexcept {
  try {
    ::pthread_setname_np(::pthread_self(), "bubblesim-ctl");
    const bool listening = here.server.listen();
    if (!here.request) {
      say("cannot start: " + here.request.error().text());
    } else if (*here.request) {
      if (auto started = here.recorder.start(**here.request, StartOrigin::kEnvironment); !started) {
        say("cannot start: " + started.error().text());
      }
    }
    if (listening) here.server.serve();
  } catch (...) {
    // No more commands are accepted; a recording under way ends by its limits or at the exit.
    here.server.close_descriptors();
  }
}

/// Runs `start` with every signal blocked that another thread of the job could take: threads
/// started in it inherit that. Signals of a thread's own faults stay unblocked.
template <class Start>
void without_signals(Start start) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    ::sigdelset(&all, own);
  }
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    start();
  } catch (const std::system_error& fault) {
    say(std::string("the system gives no thread: ") + fault.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Like setenv, which however may free the list that another thread's getenv is reading: here the
/// old list is never freed.
void add_to_environment(const char* name, const char* value) {
  if (::getenv(name) != nullptr) return;
  std::size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  static auto& lists = *new std::list<std::vector<char*>>;
  std::vector<char*>& grown = lists.emplace_back(environ, environ + count);
  grown.insert(grown.end(), {::strdup((std::string(name) + "=" + value).c_str()), nullptr});
  __atomic_store_n(&environ, grown.data(), __ATOMIC_RELEASE);
}

void offer_to_libraries() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&InitializeInjection), &own) == 0) return;
  for (const char* name : {"NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    add_to_environment(name, own.dli_fname);
  }
}

void set_handlers() {
  if (handlers_set.exchange(true)) return;
  ::pthread_atfork(nullptr, nullptr, &in_forked_child);
  // Registered again when CUPTI is ready (session_began): handlers run in reverse order, and ours
  // must run before CUPTI's. This one is for jobs that end while CUPTI is being set up.
  std::atexit([] { at_exit(); });
}

void come_to_life() {
  const Environment env = process_environment();
  RecorderSettings settings;
  settings.job = identify_job(env);
  settings.cupti = env(kEnvCupti).value_or("");
  settings.cuda_home = env("CUDA_HOME").value_or(env("CUDA_PATH").value_or(""));
  const std::string only = env(kEnvOnly).value_or("");
  if (!only.empty() && only != settings.job.executable) return;
  static std::atomic<bool> registered{false};
  settings.session_began = [] {
    if (!registered.exchange(true)) std::atexit([] { at_exit(); });
  };
  auto* here = new Life(std::move(settings), env(kEnvSocketFolder).value_or(""));
  here->request = request_from_environment(env);
  Life* none = nullptr;
  if (!life.compare_exchange_strong(none, here)) return;  // a second call; the first one counts
  offer_to_libraries();
  set_handlers();
  without_signals([here] { std::thread([here] { control(*here); }).detach(); });
}

}  // namespace
}  // namespace bubblesim::capture

extern "C" int InitializeInjection() noexcept {
  try {
    if (bubblesim::capture::life.load() == nullptr) bubblesim::capture::come_to_life();
  } catch (...) {
    // Without memory, for example: the job goes on without a recorder.
  }
  return 1;
}

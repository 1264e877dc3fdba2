#include "capture/record/process/control_server.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

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

}  // namespace

ControlServer::ControlServer(Recorder& recorder, std::string folder)
    : recorder_(recorder), folder_(std::move(folder)), buffer_(kMaxMessageBytes, '\0') {
  for (std::atomic<int>& descriptor : descriptors_) descriptor.store(-1);
}

ControlServer::~ControlServer() {
  remove_path();
  close_descriptors();
}

void ControlServer::close_descriptors() noexcept {
  for (std::atomic<int>& descriptor : descriptors_) {
    if (const int open = descriptor.exchange(-1); open >= 0) ::close(open);
  }
}

void ControlServer::remove_path() noexcept {
  if (descriptors_[kPathSlot].load() >= 0) ::unlink(path_.address.sun_path);
}

bool ControlServer::watch(int descriptor, std::size_t slot) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = slot;
  return ::epoll_ctl(descriptors_[kEpollSlot].load(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool ControlServer::open_listener(std::size_t slot, const ControlAddress& address) {
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

bool ControlServer::listen() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return false;
  descriptors_[kEpollSlot].store(epoll);
  bool open = open_listener(kAbstractSlot, abstract_address(::geteuid(), ::getpid()));
  if (folder_.empty()) return open;
  const auto path = path_address(folder_, ::geteuid(), ::getpid());
  if (path && open_listener(kPathSlot, *path)) open = true;
  return open;
}

void ControlServer::serve() {
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

void ControlServer::accept_from(std::size_t listener) {
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

std::size_t ControlServer::room_for_peer() const {
  std::size_t victim = kFirstPeer;
  for (std::size_t slot = kFirstPeer; slot < kSlots; ++slot) {
    if (descriptors_[slot].load() < 0) return slot;
    const Peer& peer = peers_[slot];
    const Peer& other = peers_[victim];
    if (peer.allowed != other.allowed ? other.allowed : peer.heard < other.heard) victim = slot;
  }
  return victim;
}

void ControlServer::drop(std::size_t slot) noexcept {
  if (const int open = descriptors_[slot].exchange(-1); open >= 0) ::close(open);
}

void ControlServer::hear(std::size_t slot) {
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
    status.message = "found a message of " + std::to_string(length) + " bytes; expected at most " +
                     std::to_string(buffer_.size());
  } else {
    status = answer(std::string_view(buffer_).substr(0, static_cast<std::size_t>(length)));
  }
  if (!send_answer(peer, status)) drop(slot);
}

RecorderStatus ControlServer::answer(std::string_view message) {
  const auto command = decode_command(message);
  if (command) return obey(*command);
  RecorderStatus status = recorder_.status();
  status.message = command.error().text();
  return status;
}

RecorderStatus ControlServer::obey(const ControlCommand& command) {
  std::string refusal;
  switch (command.kind) {
    case ControlCommand::Kind::kStart:
      if (auto done = recorder_.start(command.start, StartOrigin::kSocket); !done) {
        refusal = done.error().text();
      }
      break;
    case ControlCommand::Kind::kStop: recorder_.stop(StopReason::kAsked); break;
    case ControlCommand::Kind::kMark:
      if (!recorder_.mark(command.mark)) refusal = "nothing is being recorded";
      break;
    case ControlCommand::Kind::kStatus: break;
  }
  RecorderStatus status = recorder_.status();
  if (!refusal.empty()) status.message = refusal;
  return status;
}

}  // namespace bubblesim::capture

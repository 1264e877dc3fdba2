// Messages over Boost.MPI, in a shared object of its own (mpi_module.hpp).
//
// MPI says nothing of a rank that died; a rank on the same host is looked for among its processes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/mpi.hpp>
#include <cerrno>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sim/sweep/cluster/mpi_module.hpp"

namespace bubblesim::sweep {
namespace {

namespace mpi = boost::mpi;

constexpr int kTag = 1;
// Asking MPI costs a microsecond; a message waits a millisecond at most.
constexpr auto kShortPause = std::chrono::microseconds{100};
constexpr auto kLongPause = std::chrono::milliseconds{1};

class MpiTransport final : public Transport {
 public:
  MpiTransport()
      : environment_(std::in_place, mpi::threading::funneled, /*abort_on_exception=*/false) {
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string own = host.data();
    std::vector<std::string> hosts;
    std::vector<int> processes;
    mpi::all_gather(world_, own, hosts);
    mpi::all_gather(world_, static_cast<int>(getpid()), processes);
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      neighbours_.push_back(hosts[i] == own ? processes[i] : 0);
    }
  }

  [[nodiscard]] int rank() const override { return world_.rank(); }
  [[nodiscard]] int size() const override { return world_.size(); }

  void send(int to, std::vector<std::uint8_t> bytes) override {
    Sending& sending = sendings_.emplace_back(Sending{{}, std::move(bytes)});
    try {
      sending.request = world_.isend(to, kTag, sending.bytes.data(),
                                     static_cast<int>(sending.bytes.size()));
    } catch (const mpi::exception&) {
      sendings_.pop_back();  // the other end is gone: what is sent to it vanishes
    }
  }

  [[nodiscard]] std::optional<Message> receive(Duration longest) override {
    const auto end = std::chrono::steady_clock::now() + longest;
    std::chrono::microseconds pause = kShortPause;
    for (;;) {
      forget_sent();
      if (auto message = probe()) return message;
      if (std::chrono::steady_clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::microseconds>(2 * pause, kLongPause);
    }
  }

  // A process of the same user: no other one takes its number within a tenth of a second.
  [[nodiscard]] bool gone(int rank) override {
    const int process = neighbours_[static_cast<std::size_t>(rank)];
    return process != 0 && kill(process, 0) != 0 && errno == ESRCH;
  }

  void part(Parting how) override {
    if (how == Parting::kAlone) return;
    while (!sendings_.empty()) forget_sent();
    environment_.reset();  // waits for all ranks
  }

 private:
  struct Sending {
    mpi::request request;
    std::vector<std::uint8_t> bytes;
  };

  void forget_sent() {
    for (auto sending = sendings_.begin(); sending != sendings_.end();) {
      sending = sent(*sending) ? sendings_.erase(sending) : std::next(sending);
    }
  }

  static bool sent(Sending& sending) {
    try {
      return sending.request.test().has_value();
    } catch (const mpi::exception&) {
      return true;
    }
  }

  std::optional<Message> probe() {
    try {
      const auto status = world_.iprobe(mpi::any_source, kTag);
      if (!status) return std::nullopt;
      Message message{status->source(), {}};
      message.bytes.resize(static_cast<std::size_t>(*status->count<std::uint8_t>()));
      world_.recv(status->source(), kTag, message.bytes.data(),
                  static_cast<int>(message.bytes.size()));
      return message;
    } catch (const mpi::exception&) {
      return std::nullopt;
    }
  }

  std::optional<mpi::environment> environment_;
  mpi::communicator world_;
  std::vector<int> neighbours_;  // process of each rank on this host; 0: it is on another one
  std::list<Sending> sendings_;
};

}  // namespace
}  // namespace bubblesim::sweep

extern "C" __attribute__((visibility("default"))) bubblesim::sweep::Transport*
bubblesim_mpi_transport_1(void (*why)(const char* text, void* to), void* to) noexcept {
  try {
    return new bubblesim::sweep::MpiTransport();
  } catch (const std::exception& fault) {
    why(fault.what(), to);
  } catch (...) {
    why("for no reason that is known", to);
  }
  return nullptr;
}

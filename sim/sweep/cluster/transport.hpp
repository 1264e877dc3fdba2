// What ranks of a sweep send each other messages with. MPI in programs (mpi_transport.cpp), threads
// of one process in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::sweep {

/// How long leader and workers wait for a message before they look after other things.
inline constexpr Duration kLongestReceive = std::chrono::milliseconds{20};

struct Message {
  int from = 0;
  std::vector<std::uint8_t> bytes;
};

enum class Parting : std::uint8_t {
  kTogether,  ///< every rank comes to this call: an orderly end
  kAlone,     ///< some rank never will; nobody is waited for
};

/// Used by one thread. Messages between two ranks arrive in order, if they arrive: the other end
/// may be gone, and what is sent to it vanishes.
class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Returns at once; the bytes are on their way as long as this rank goes on receiving.
  virtual void send(int to, std::vector<std::uint8_t> bytes) = 0;
  /// The next message, from whomever; nothing after about `longest`.
  [[nodiscard]] virtual std::optional<Message> receive(Duration longest) = 0;
  /// Whether the rank is known to be gone. False says nothing.
  [[nodiscard]] virtual bool gone(int rank) = 0;
  /// The last call. Sends what is still on its way unless the parting is alone.
  virtual void part(Parting how) = 0;
};

}  // namespace bubblesim::sweep

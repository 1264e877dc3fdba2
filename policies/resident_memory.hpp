// How much of each client's memory is on the device if fillers may allocate more than fits (TGS:
// unified memory; AntMan: host memory behind its allocator). The protected client is fully
// resident. The memory left by this client and a reserve goes to the fillers in client order; the
// rest of their memory lies in host memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class ResidentMemory {
 public:
  void start(const policy::GpuInfo& gpu, std::span<const policy::ClientInfo> clients,
             Bytes reserve);
  /// The client's memory on the device; nothing: not known.
  [[nodiscard]] std::optional<Bytes> resident_of(ClientId client) const;
  /// A filler has ended: later fillers get its memory.
  void remove(ClientId client);

 private:
  void distribute();

  Bytes room_;  ///< for all fillers
  bool known_ = false;
  std::vector<std::optional<Bytes>> needed_;
  std::vector<std::optional<Bytes>> resident_;
};

}  // namespace bubblesim::policies

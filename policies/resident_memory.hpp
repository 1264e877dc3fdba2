// How much of each client's memory is on the device if fillers may allocate more than fits (TGS:
// unified memory; AntMan: host memory behind its allocator). The protected client is fully
// resident. The memory that it and a reserve leave goes to the fillers in client order; what does
// not fit lies in host memory.
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
  /// A filler has ended: later fillers get its room.
  void remove(ClientId client);

 private:
  void distribute();

  Bytes room_;  ///< for all fillers
  bool known_ = false;
  std::vector<std::optional<Bytes>> needed_;
  std::vector<std::optional<Bytes>> resident_;
};

}  // namespace bubblesim::policies

#include "capture/substrate/process_environment.hpp"

#include <algorithm>

namespace bubblesim::capture {

const char* substrate_name(Substrate substrate) {
  switch (substrate) {
    case Substrate::kAlone: return "alone";
    case Substrate::kTimeSliced: return "time-sliced";
    case Substrate::kMps: return "mps";
    case Substrate::kStreams: return "streams";
  }
  return "alone";
}

namespace {

constexpr std::uint32_t kMostConnections = 32;    ///< most connections that CUDA gives a context
constexpr std::uint32_t kLeastConnections = 2;    ///< CUDA's own choice for a client of MPS
constexpr std::uint32_t kPooledConnections = 60;  ///< half of an MPS server's

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

bool has_indices(const std::string& devices) {
  return !devices.empty() && devices[0] >= '0' && devices[0] <= '9';
}

}  // namespace

std::string numbered_gpus(const Variables& variables, const std::string& suffix,
                          std::size_t first) {
  const auto shown = variables.find(kVisible);
  auto more = shown == variables.end() ? 0 : std::ranges::count(shown->second, ',');
  std::string text = std::to_string(first) + suffix;
  for (; more > 0; --more) text += "," + std::to_string(++first) + suffix;
  return text;
}

void set_share(Variables& variables, const GpuShare& share) {
  std::erase_if(variables, [](const auto& entry) { return entry.first.starts_with("CUDA_MPS_"); });
  if (!share.device.empty()) variables[kVisible] = share.device;
  // An index is nvidia-smi's, not CUDA's by speed.
  if (has_indices(share.device)) variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  variables["CUDA_MPS_PIPE_DIRECTORY"] = share.mps_directory.empty() ? kNoMps : share.mps_directory;
  if (share.mps_directory.empty()) return;
  const auto shown = variables.find(kVisible);
  if (shown != variables.end() && has_indices(shown->second)) {
    shown->second = numbered_gpus(variables, {}, share.place);
  }
  if (share.sm_percentage < 100)
    variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(share.sm_percentage);
  if (share.priority == MpsPriority::kBelowNormal) variables["CUDA_MPS_CLIENT_PRIORITY"] = "1";
}

std::uint32_t device_connections(const WorkerSettings& settings) {
  if (settings.substrate != Substrate::kMps) return kMostConnections;
  const std::uint32_t clients = std::max(settings.clients, 1U);
  return std::clamp(kPooledConnections / clients, kLeastConnections, kMostConnections);
}

Result<Variables> worker_environment(const Variables& inherited, const WorkerSettings& settings) {
  if (settings.substrate == Substrate::kMps && settings.mps_directory.empty())
    return fail("a client of MPS needs the pipe directory of its daemon; none was given");
  if (settings.sm_percentage < 1 || settings.sm_percentage > 100)
    return fail("MPS active-thread percentage is " + std::to_string(settings.sm_percentage) +
                "; expected 1 to 100");
  Variables variables = inherited;
  set_share(variables, settings);
  variables["CUDA_DEVICE_MAX_CONNECTIONS"] = std::to_string(device_connections(settings));
  variables["CUDA_MODULE_LOADING"] = "EAGER";
  variables.erase("CUDA_LAUNCH_BLOCKING");
  return variables;
}

}  // namespace bubblesim::capture

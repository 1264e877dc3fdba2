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

constexpr std::uint32_t kMostConnections = 32;    ///< that CUDA gives a context
constexpr std::uint32_t kLeastConnections = 2;    ///< CUDA's own choice for a client of MPS
constexpr std::uint32_t kPooledConnections = 60;  ///< half of an MPS server's

/// An index means what nvidia-smi numbers so, not CUDA's order of speed.
bool is_index(const std::string& device) {
  return std::all_of(device.begin(), device.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<void> add_mps(const WorkerSettings& settings, Variables& variables) {
  if (settings.mps_directory.empty())
    return fail("a client of MPS needs the pipe directory of its daemon; none was given");
  if (settings.sm_percentage < 1 || settings.sm_percentage > 100)
    return fail("MPS active-thread percentage is " + std::to_string(settings.sm_percentage) +
                "; expected 1 to 100");
  variables["CUDA_MPS_PIPE_DIRECTORY"] = settings.mps_directory;
  // A daemon numbers the GPUs that its own CUDA_VISIBLE_DEVICES shows it from 0, and its clients
  // count by that; UUIDs mean the same to both.
  const auto shown = variables.find("CUDA_VISIBLE_DEVICES");
  if (shown != variables.end() && !shown->second.empty() && is_index(shown->second.substr(0, 1)))
    shown->second = "0";
  if (settings.sm_percentage < 100)
    variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(settings.sm_percentage);
  if (settings.priority == MpsPriority::kBelowNormal) variables["CUDA_MPS_CLIENT_PRIORITY"] = "1";
  return {};
}

}  // namespace

std::uint32_t device_connections(const WorkerSettings& settings) {
  if (settings.substrate != Substrate::kMps) return kMostConnections;
  const std::uint32_t clients = std::max(settings.clients, 1U);
  return std::clamp(kPooledConnections / clients, kLeastConnections, kMostConnections);
}

Result<Variables> worker_environment(const Variables& inherited, const WorkerSettings& settings) {
  Variables variables = inherited;
  std::erase_if(variables,
                [](const auto& variable) { return variable.first.starts_with("CUDA_MPS_"); });
  variables["CUDA_DEVICE_MAX_CONNECTIONS"] = std::to_string(device_connections(settings));
  variables["CUDA_MODULE_LOADING"] = "EAGER";
  variables.erase("CUDA_LAUNCH_BLOCKING");
  if (!settings.device.empty()) {
    variables["CUDA_VISIBLE_DEVICES"] = settings.device;
    if (is_index(settings.device)) variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  if (settings.substrate == Substrate::kMps) {
    BUBBLESIM_RETURN_IF_ERROR(add_mps(settings, variables));
  } else {
    variables["CUDA_MPS_PIPE_DIRECTORY"] = settings.no_mps_directory;
  }
  return variables;
}

}  // namespace bubblesim::capture

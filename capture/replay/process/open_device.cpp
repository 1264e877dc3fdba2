#include "capture/replay/process/open_device.hpp"

#include <string_view>

#include "capture/replay/cuda/cuda_device.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::string_view kCuda = "cuda:";
constexpr std::string_view kFake = "fake:";

Result<std::unique_ptr<Device>> open_cuda(const std::string& address, HostClock& clock,
                                          const std::string& fits, bool whole_gpu) {
  const auto index = parse_number<std::uint32_t>(address.substr(kCuda.size()));
  if (!index) {
    return fail("\"" + address + "\" is no device; expected \"cuda:\" and its index");
  }
  CudaOptions options;
  options.fit_cache = fits;
  options.whole_gpu = whole_gpu;
  return open_cuda_device(*index, clock, options);
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const std::string& address, HostClock& clock,
                                            ClientId client, const std::string& fits,
                                            bool whole_gpu) {
  if (address.starts_with(kFake)) {
    return open_fake_device(address.substr(kFake.size()), clock, client);
  }
  if (address.starts_with(kCuda)) return open_cuda(address, clock, fits, whole_gpu);
  return fail("\"" + address + "\" is no device; expected \"cuda:INDEX\" or \"fake:NAME\"");
}

}  // namespace bubblesim::capture

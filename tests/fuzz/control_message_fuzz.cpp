// Any bytes as messages of the control socket and as values of the environment. Nothing crashes;
// what is accepted reads back as the same after it is written; what is refused says why.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "capture/protocol/capture_request.hpp"

namespace {

using namespace bubblesim::capture;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_environment(const std::string& value) {
  for (const char* changed : {kEnvStart, kEnvOutput, kEnvDuration, kEnvMaxBytes, kEnvIterations,
                              kEnvStartAt, kEnvGraphs, kEnvMemory}) {
    const auto read = request_from_environment([&](const char* name) {
      if (name == std::string(changed)) return std::optional<std::string>(value);
      if (name == std::string(kEnvStart)) return std::optional<std::string>("now");
      if (name == std::string(kEnvOutput)) return std::optional<std::string>("/o");
      return std::optional<std::string>();
    });
    if (!read) {
      require(!read.error().message.empty());
      continue;
    }
    if (!*read) continue;
    const auto variables = environment_of(**read);
    const auto again = request_from_environment([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
    require(again && *again == *read);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  if (const auto command = decode_command(text)) {
    const std::string written = encode(*command);
    require(written.size() <= kMaxMessageBytes && decode_command(written) == command);
  } else {
    require(!command.error().message.empty());
  }
  if (const auto status = decode_status(text)) {
    const std::string written = encode(*status);
    require(written.size() <= kMaxMessageBytes && decode_status(written).has_value());
  } else {
    require(!status.error().message.empty());
  }
  check_environment(text);
  return 0;
}

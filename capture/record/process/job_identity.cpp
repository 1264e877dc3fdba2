#include "capture/record/process/job_identity.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::uint32_t kMostRanks = 1U << 24U;

std::optional<std::uint32_t> first_number(const Environment& env,
                                          std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto text = env(name);
    if (!text) continue;
    const auto number = parse_number<std::uint32_t>(*text);
    if (number && *number < kMostRanks) return number;
  }
  return std::nullopt;
}

std::string executable_name() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string_view text(path.data(), static_cast<std::size_t>(length));
  return std::string(text.substr(text.rfind('/') + 1));
}

}  // namespace

JobIdentity identify_job(const Environment& env) {
  JobIdentity job;
  job.pid = ::getpid();
  job.executable = executable_name();
  job.rank =
      first_number(env, {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}).value_or(0);
  job.world_size =
      first_number(env, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})
          .value_or(1);
  if (job.world_size <= job.rank) job.world_size = job.rank + 1;
  return job;
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

void say(const std::string& text) noexcept {
  try {
    std::string line = "bubblesim capture: " + text;
    for (char& letter : line) {
      if (letter == '\n') letter = ' ';
    }
    line += '\n';
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  } catch (...) {
    return;  // no memory for the text
  }
}

}  // namespace bubblesim::capture

// Any bytes as an Nsight Systems export: the import refuses with a reason, or gives ranks that
// keep every promise of the trace records. The header's page count is set to what is there, so
// that cut and spliced files are read and not refused at once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/nsys_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bubblesim::traces;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size >= 512) {
    const std::size_t pages = size / 512;
    for (unsigned i = 0; i < 4; ++i) {
      bytes[28 + i] = static_cast<char>(pages >> 8U * (3 - i));
      bytes[92 + i] = bytes[24 + i];
    }
  }
  const auto job = import_nsys_bytes(bytes, "fuzz.sqlite");
  if (!job) {
    if (job.error().message.empty()) std::abort();
    return 0;
  }
  if (job->ranks.empty()) std::abort();
  for (const RankTrace& rank : job->ranks) {
    if (!broken_promise(rank).empty()) std::abort();
  }
  return 0;
}

// Any bytes as a Kineto trace: the import refuses with a reason, or gives a trace that keeps
// every promise of the trace records.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/align.hpp"
#include "traces/import/kineto_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bubblesim::traces;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = import_kineto_text(text, "fuzz.json");
  if (!trace) {
    if (trace.error().message.empty()) std::abort();
    return 0;
  }
  if (!broken_promise(*trace).empty()) std::abort();
  JobTrace job{{*trace, *trace}};
  align_ranks(job);
  if (!broken_promise(job.ranks[1]).empty()) std::abort();
  return 0;
}

// Any bytes as a Chakra trace of either form: the import refuses with a reason, or gives a trace
// that keeps every promise of the trace records and can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/export/chakra_export.hpp"
#include "traces/import/chakra/chakra_import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bubblesim::traces;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto trace = import_chakra_bytes(bytes, "fuzz.0.et");
  if (!trace) {
    if (trace.error().message.empty()) std::abort();
    return 0;
  }
  if (!broken_promise(*trace).empty()) std::abort();
  const auto again = import_chakra_bytes(chakra_bytes(*trace), "fuzz.0.et");
  if (!again) std::abort();
  if (again->device_ops.size() != trace->device_ops.size()) std::abort();
  if (again->host_calls.size() != trace->host_calls.size()) std::abort();
  return 0;
}

// Any bytes as the record of a run, as they come from another process. What is taken must give the
// same bytes again once it was written once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sim/store/run_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto record = bubblesim::store::decode_run_record({data, size});
  if (!record) return 0;
  const auto bytes = bubblesim::store::encode(*record);
  const auto again = bubblesim::store::decode_run_record(bytes);
  if (!again || bubblesim::store::encode(*again) != bytes) std::abort();
  return 0;
}

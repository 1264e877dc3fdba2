// Any bytes as recorded arrivals; the first byte chooses the format.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/workload/arrivals/arrival_file.hpp"

namespace {

using namespace bubblesim;
using workload::ArrivalFormat;

constexpr ArrivalFormat kFormats[] = {ArrivalFormat::kAzure, ArrivalFormat::kMooncake,
                                      ArrivalFormat::kGaps, ArrivalFormat::kSplitwise,
                                      ArrivalFormat::kQueries};

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto arrivals = workload::parse_arrivals(text, kFormats[data[0] % 5], "fuzz");
  if (!arrivals) {
    require(!arrivals.error().message.empty());
    return 0;
  }
  const auto& offsets = arrivals->offsets;
  require(!offsets.empty() && offsets.front() >= Duration::zero());
  require(std::is_sorted(offsets.begin(), offsets.end()));
  return 0;
}

// Any bytes as a table of kernels.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/workload/kernel_table.hpp"

namespace {

using namespace bubblesim;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hardware::GpuSpec spec;
  spec.sm_count = 4;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program =
      workload::parse_kernel_table(text, "fuzz", spec, std::chrono::microseconds{5});
  if (!program) {
    require(program.error().file == "fuzz" && !program.error().message.empty());
    return 0;
  }
  require(!program->ops.empty() && program->ops.size() == program->profiles.size());
  for (const program::Op& op : program->ops) require(op.duration > Duration::zero());
  require(program->threads.front().steps.back().kind == program::StepKind::kEnd);
  return 0;
}

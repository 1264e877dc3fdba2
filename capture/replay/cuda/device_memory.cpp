#include "capture/replay/cuda/device_memory.hpp"

#include <algorithm>
#include <bit>

namespace bubblesim::capture::cuda {
Result<std::unique_ptr<DeviceMemory>> DeviceMemory::make(DeviceContext& context,
                                                         const JobPlan& plan) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(context));
  memory->stream_bytes_ = std::bit_ceil(std::max<std::uint64_t>(2 * context.facts().l2_bytes,
                                                                1ULL << 20));
  BUBBLESIM_RETURN_IF_ERROR(
      memory->take(memory->stream_, memory->stream_bytes_, "the buffer that stand-ins stream"));
  BUBBLESIM_RETURN_IF_ERROR(memory->take_copy_buffers(plan));
  std::uint64_t steps = 0;
  for (const program::ThreadProgram& thread : plan.program.threads) steps += thread.steps.size();
  BUBBLESIM_RETURN_IF_ERROR(
      memory->take(memory->scales_, std::max<std::uint64_t>(steps, 1) * 4, "factors of graphs"));
  if (plan.memory.value > memory->taken_)
    BUBBLESIM_RETURN_IF_ERROR(memory->take(memory->rest_, plan.memory.value - memory->taken_,
                                           "the rest of the job's memory"));
  return memory;
}

Result<void> DeviceMemory::take_copy_buffers(const JobPlan& plan) {
  for (const program::Op& op : plan.program.ops) {
    if (is_kernel(op.kind)) continue;
    const std::uint64_t bytes = copy_of(plan, op).bytes.value;
    copy_bytes_ = std::max(copy_bytes_, bytes == 0 ? kCopyChunk : bytes);
  }
  copy_bytes_ = std::min(copy_bytes_, kCopyChunk);
  if (copy_bytes_ == 0) return {};
  BUBBLESIM_RETURN_IF_ERROR(take(copy_, 2 * copy_bytes_, "the buffers of copies"));
  BUBBLESIM_CUDA(context_.driver(), host_allocate, &host_, copy_bytes_, kHostAllocPortable);
  return {};
}

Result<void> DeviceMemory::take(DevicePointer& pointer, std::uint64_t bytes, const char* what) {
  const Driver& driver = context_.driver();
  const Status status = driver.allocate(&pointer, bytes);
  if (status == Status::kSuccess) {
    taken_ += bytes;
    return {};
  }
  std::size_t free = 0;
  std::size_t total = 0;
  (void)driver.memory_info(&free, &total);
  return fail(context_.facts().name + " cannot hold " + what + " of " + std::to_string(bytes) +
              " bytes: " + driver.failure("allocate", status) + "; " + std::to_string(free) +
              " of " + std::to_string(total) + " are free");
}

DeviceMemory::~DeviceMemory() {
  const Driver& driver = context_.driver();
  for (const DevicePointer memory : {rest_, scales_, copy_, stream_})
    if (memory != 0) (void)driver.release(memory);
  if (host_ != nullptr) (void)driver.host_release(host_);
}

}  // namespace bubblesim::capture::cuda

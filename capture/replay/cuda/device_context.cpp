#include "capture/replay/cuda/device_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "capture/replay/cuda/kernel_image.hpp"

namespace bubblesim::capture::cuda {
namespace {

/// In the form of NVIDIA's tools: 8-4-4-4-12 digits.
std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

/// Reads attributes, and keeps the first failure.
class Reader {
 public:
  Reader(const Driver& driver, DeviceHandle device) : driver_(driver), device_(device) {}

  template <class Number>
  void read(Number& number, Attribute attribute) {
    int value = 0;
    const Status status = driver_.device_attribute(&value, attribute, device_);
    if (status != Status::kSuccess && status_ == Status::kSuccess) status_ = status;
    number = static_cast<Number>(value);
  }
  [[nodiscard]] Status status() const { return status_; }

 private:
  const Driver& driver_;
  DeviceHandle device_;
  Status status_ = Status::kSuccess;
};

void read_limits(Reader& reader, DeviceFacts& facts) {
  reader.read(facts.threads_per_block, kMaxThreadsPerBlock);
  reader.read(facts.threads_per_sm, kMaxThreadsPerSm);
  reader.read(facts.blocks_per_sm, kMaxBlocksPerSm);
  reader.read(facts.registers_per_sm, kRegistersPerSm);
  reader.read(facts.shared_bytes_per_sm, kSharedBytesPerSm);
  reader.read(facts.shared_bytes_per_block, kSharedBytesPerBlock);
  reader.read(facts.reserved_shared_bytes, kReservedSharedBytes);
  constexpr std::array kGrid{kMaxGridX, kMaxGridY, kMaxGridZ};
  constexpr std::array kBlock{kMaxBlockX, kMaxBlockY, kMaxBlockZ};
  for (std::size_t i = 0; i < 3; ++i) {
    reader.read(facts.most_blocks[i], kGrid[i]);
    reader.read(facts.most_threads[i], kBlock[i]);
  }
}

}  // namespace

Result<std::unique_ptr<DeviceContext>> DeviceContext::open(const std::string& library,
                                                           std::uint32_t index) {
  if (kernel_image().empty())
    return fail("built without a CUDA compiler (nvcc): this build has no stand-in kernels");
  std::unique_ptr<DeviceContext> context(new DeviceContext);
  BUBBLESIM_ASSIGN_OR_RETURN(context->driver_, find_driver(library));
  BUBBLESIM_RETURN_IF_ERROR(context->choose(index));
  BUBBLESIM_RETURN_IF_ERROR(context->read_facts());
  BUBBLESIM_RETURN_IF_ERROR(context->load());
  return context;
}

Result<void> DeviceContext::choose(std::uint32_t index) {
  BUBBLESIM_CUDA(driver_, init, 0);
  int count = 0;
  BUBBLESIM_CUDA(driver_, device_count, &count);
  if (index >= static_cast<std::uint32_t>(count))
    return fail(fmt::format("no GPU {}: the driver has {}", index, count));
  BUBBLESIM_CUDA(driver_, device_get, &device_, static_cast<int>(index));
  return {};
}

Result<void> DeviceContext::read_facts() {
  std::array<char, 256> name{};
  BUBBLESIM_CUDA(driver_, device_name, name.data(), static_cast<int>(name.size()) - 1, device_);
  facts_.name = name.data();
  Uuid uuid{};
  BUBBLESIM_CUDA(driver_, device_uuid, &uuid, device_);
  facts_.uuid = uuid_text(uuid);
  BUBBLESIM_CUDA(driver_, driver_version, &facts_.driver_version);
  Reader reader(driver_, device_);
  reader.read(facts_.sm_count, kSmCount);
  reader.read(facts_.clock_khz, kClockKhz);
  reader.read(facts_.l2_bytes, kL2Bytes);
  read_limits(reader, facts_);
  BUBBLESIM_RETURN_IF_ERROR(checked(driver_, reader.status(), "device_attribute"));
  // Both attributes are deprecated: a driver without them is no fault.
  std::uint64_t khz = 0;
  std::uint64_t bits = 0;
  Reader memory(driver_, device_);
  memory.read(khz, kMemoryClockKhz);
  memory.read(bits, kMemoryBusBits);
  if (memory.status() == Status::kSuccess) facts_.dram_bytes_per_second = khz * 1000 * 2 * bits / 8;
  return {};
}

Result<void> DeviceContext::load() {
  const Status retained = driver_.primary_retain(&primary_, device_);
  if (retained == Status::kDeviceUnavailable)
    return fail(facts_.name + " lets this process not in: " +
                driver_.failure("primary_retain", retained) +
                "; another has it while its compute mode is ExclusiveProcess or Prohibited "
                "(nvidia-smi -q -d COMPUTE), or an MPS daemon of another user");
  BUBBLESIM_RETURN_IF_ERROR(checked(driver_, retained, "primary_retain"));
  BUBBLESIM_CUDA(driver_, set_current, primary_);
  const Status status = driver_.library_load(&library_, kernel_image().data(), nullptr, nullptr, 0,
                                             nullptr, nullptr, 0);
  if (status == Status::kSuccess) return {};
  return fail(fmt::format("{}; the driver is of CUDA {}.{}: it may be older than the nvcc that "
                          "this was built with, or the GPU ({}) older than compute capability 8.0",
                          driver_.failure("library_load", status), facts_.driver_version / 1000,
                          facts_.driver_version % 1000 / 10, facts_.name));
}

Result<KernelHandle> DeviceContext::kernel(const std::string& name) {
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second;
  KernelHandle handle = nullptr;
  BUBBLESIM_RETURN_IF_ERROR(
      checked(driver_, driver_.library_kernel(&handle, library_, name.c_str()), "library_kernel",
              name));
  kernels_.emplace(name, handle);
  return handle;
}

DeviceContext::~DeviceContext() {
  if (library_ != nullptr) (void)driver_.library_unload(library_);
  if (primary_ != nullptr) (void)driver_.primary_release(device_);
}

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

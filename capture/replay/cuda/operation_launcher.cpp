#include "capture/replay/cuda/operation_launcher.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::capture::cuda {
namespace {

constexpr std::size_t kMemsetPath = 3;

std::size_t path_of(const JobPlan& plan, const program::Op& op) {
  return op.kind == program::WorkKind::kMemset ? kMemsetPath
                                               : static_cast<std::size_t>(copy_of(plan, op).path);
}

}  // namespace

Result<void> OperationLauncher::prepare(HostClock& clock, StreamHandle stream, Duration patience) {
  BUBBLESIM_ASSIGN_OR_RETURN(begin_, context_.kernel("begin_copy"));
  BUBBLESIM_ASSIGN_OR_RETURN(end_, context_.kernel("end_copy"));
  for (const program::Op& op : plan_.program.ops) {
    if (is_kernel(op.kind)) continue;
    const std::size_t path = path_of(plan_, op);
    double& rate = bytes_per_ns_[path];
    if (copy_of(plan_, op).bytes.value != 0 || rate != 0) continue;
    BUBBLESIM_ASSIGN_OR_RETURN(rate, measure_rate(path, clock, stream, patience));
  }
  return {};
}

/// Four chunks, so that a copy's fixed cost counts for little.
Result<double> OperationLauncher::measure_rate(std::size_t path, HostClock& clock,
                                               StreamHandle stream, Duration patience) const {
  const Driver& driver = context_.driver();
  const std::uint64_t bytes = 4 * memory_.copy_bytes();
  BUBBLESIM_RETURN_IF_ERROR(move(path, memory_.copy_bytes(), stream));
  HostTime begun = clock.now();
  for (int run = 0; run < 2; ++run) {
    if (run == 1) BUBBLESIM_RETURN_IF_ERROR(move(path, bytes, stream));
    const HostTime start = clock.now();
    Status status = Status::kNotReady;
    while ((status = driver.stream_query(stream)) == Status::kNotReady)
      if (clock.now() > start + patience) return fail("a copy had not ended in time");
    BUBBLESIM_RETURN_IF_ERROR(checked(driver, status, "stream_query"));
    if (run == 0) begun = clock.now();
  }
  const auto lasted = static_cast<double>(std::max<std::int64_t>(to_ns(clock.now() - begun), 1));
  return static_cast<double>(bytes) / lasted;
}

Result<void> OperationLauncher::enqueue(std::uint32_t op, StreamHandle stream, double factor,
                                        DevicePointer scale, bool stamped) const {
  return is_kernel(plan_.program.ops[op].kind) ? enqueue_kernel(op, stream, factor, scale)
                                               : enqueue_copy(op, stream, factor, stamped);
}

Result<void> OperationLauncher::enqueue_kernel(std::uint32_t op, StreamHandle stream,
                                               double factor, DevicePointer scale) const {
  const StandIn& stand_in = stand_ins_[op];
  StandInArguments arguments = arguments_of(stand_in, ring_, op, memory_, factor, scale);
  void* list[] = {&arguments};
  BUBBLESIM_CUDA(context_.driver(), launch_kernel, stand_in.kernel, stand_in.shape.grid[0],
                 stand_in.shape.grid[1], stand_in.shape.grid[2], stand_in.shape.block[0],
                 stand_in.shape.block[1], stand_in.shape.block[2], stand_in.shape.shared_bytes,
                 stream, list, nullptr);
  return {};
}

Result<void> OperationLauncher::enqueue_copy(std::uint32_t op, StreamHandle stream,
                                             double factor, bool stamped) const {
  const program::Op& copy = plan_.program.ops[op];
  const std::size_t path = path_of(plan_, copy);
  const double solo = static_cast<double>(to_ns(copy.duration));
  const std::uint64_t given = copy_of(plan_, copy).bytes.value;
  const double bytes = given != 0 ? static_cast<double>(given) : solo * bytes_per_ns_[path];
  const auto scaled = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes * factor)));
  if (!stamped) return move(path, scaled, stream);
  BUBBLESIM_RETURN_IF_ERROR(stamp(begin_, op, stream));
  BUBBLESIM_RETURN_IF_ERROR(move(path, scaled, stream));
  return stamp(end_, op, stream);
}

Result<void> OperationLauncher::stamp(KernelHandle kernel, std::uint32_t op,
                                      StreamHandle stream) const {
  StampArguments arguments{ring_.state(op), ring_.slots(op), kSlots, 0};
  void* list[] = {&arguments};
  BUBBLESIM_CUDA(context_.driver(), launch_kernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, list,
                 nullptr);
  return {};
}

Result<void> OperationLauncher::move(std::size_t path, std::uint64_t bytes,
                                     StreamHandle stream) const {
  const Driver& driver = context_.driver();
  while (bytes > 0) {
    const std::uint64_t part = std::min(bytes, memory_.copy_bytes());
    bytes -= part;
    if (path == kMemsetPath) {
      BUBBLESIM_CUDA(driver, set_bytes, memory_.copy_to(), 0, part, stream);
    } else if (path == static_cast<std::size_t>(CopyPath::kHostToDevice)) {
      BUBBLESIM_CUDA(driver, copy_to_device, memory_.copy_to(), memory_.host(), part, stream);
    } else if (path == static_cast<std::size_t>(CopyPath::kDeviceToHost)) {
      BUBBLESIM_CUDA(driver, copy_to_host, memory_.host(), memory_.copy_from(), part, stream);
    } else {
      BUBBLESIM_CUDA(driver, copy_on_device, memory_.copy_to(), memory_.copy_from(), part, stream);
    }
  }
  return {};
}

}  // namespace bubblesim::capture::cuda

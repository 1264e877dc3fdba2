#include "capture/replay/cuda/stream_set.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace bubblesim::capture::cuda {
namespace {

/// SMs that no green context of this process has, by device. The primary context is the process's,
/// too: jobs are threads of one process that do not know each other, and the driver splits the same
/// resource in the same way in each call.
struct FreeSms {
  std::mutex mutex;
  struct Left {
    DeviceResource resource{};
    std::uint32_t users = 0;
    std::vector<GreenHandle> holders;  ///< hold the rest of earlier splits, for no other use
  };
  std::map<DeviceHandle, Left> left;
};
FreeSms& free_sms() {
  static FreeSms all;
  return all;
}

/// CUDA counts down: the greatest priority has the smallest number, the least has 0.
int cuda_priority(std::int32_t wanted, int least, int greatest, CounterSet& counters) {
  const int exact = wanted <= 0 ? least : -wanted;
  const int given = std::clamp(exact, greatest, least);
  if (given != exact || wanted < 0) counters.add(kPriorityClamped);
  return given;
}

}  // namespace

Result<std::unique_ptr<StreamSet>> StreamSet::make(DeviceContext& context, const JobPlan& plan,
                                                   CounterSet& counters) {
  std::unique_ptr<StreamSet> set(new StreamSet(context));
  const Driver& driver = context.driver();
  set->sms_ = context.facts().sm_count;
  int least = 0;
  int greatest = 0;
  BUBBLESIM_CUDA(driver, priority_range, &least, &greatest);
  const int priority = cuda_priority(plan.priority, least, greatest, counters);
  if (plan.sms > 0) BUBBLESIM_RETURN_IF_ERROR(set->make_green(plan.sms, counters));
  BUBBLESIM_CUDA(driver, set_current, context.primary());
  BUBBLESIM_RETURN_IF_ERROR(set->add_streams(plan.program.stream_count, priority));
  return set;
}

namespace {

/// The rest of a split can be split only after a green context has got it.
Result<void> keep_rest(const DeviceContext& context, FreeSms::Left& left, DeviceResource& rest) {
  const Driver& driver = context.driver();
  left.resource = {};  // if a call below fails, nothing is left to split
  if (rest.sm_count == 0) return {};
  ResourceDesc desc = nullptr;
  GreenHandle holder = nullptr;
  BUBBLESIM_CUDA(driver, resource_desc, &desc, &rest, 1);
  BUBBLESIM_CUDA(driver, green_create, &holder, desc, context.device(), kGreenDefaultStream);
  left.holders.push_back(holder);
  BUBBLESIM_CUDA(driver, green_resource, holder, &left.resource, kResourceSm);
  return {};
}

}  // namespace

Result<void> StreamSet::make_green(std::uint32_t sms, CounterSet& counters) {
  const Driver& driver = context_.driver();
  if (!driver.has_green_contexts())
    return fail("this driver has no green contexts, so a job cannot have " + std::to_string(sms) +
                " SMs of its own; they came with CUDA 12.5");
  FreeSms& all = free_sms();
  const std::lock_guard lock(all.mutex);
  FreeSms::Left& left = all.left[context_.device()];
  DeviceResource whole{};
  BUBBLESIM_CUDA(driver, device_resource, context_.device(), &whole, kResourceSm);
  if (sms > whole.sm_count)
    return fail("a job asks for " + std::to_string(sms) + " SMs of its own; the GPU, or this "
                "process's part of it, has " + std::to_string(whole.sm_count));
  if (left.users == 0) left.resource = whole;
  if (left.resource.sm_count < sms) {
    left.resource = whole;
    if (left.users > 0) counters.add(kSmsOverlap);
  }
  DeviceResource part{};
  DeviceResource rest{};
  unsigned groups = 1;
  BUBBLESIM_CUDA(driver, split_sms, &part, &groups, &left.resource, &rest, 0, sms);
  if (groups != 1)
    return fail("the driver cannot give " + std::to_string(sms) + " SMs of " +
                std::to_string(whole.sm_count) + " to one job");
  ResourceDesc desc = nullptr;
  BUBBLESIM_CUDA(driver, resource_desc, &desc, &part, 1);
  BUBBLESIM_CUDA(driver, green_create, &green_, desc, context_.device(), kGreenDefaultStream);
  ++left.users;
  BUBBLESIM_RETURN_IF_ERROR(keep_rest(context_, left, rest));
  sms_ = part.sm_count;
  if (sms_ > sms) counters.add(kSmsRounded, sms_ - sms);
  return {};
}

Result<void> StreamSet::add_streams(std::uint32_t count, int priority) {
  const Driver& driver = context_.driver();
  for (std::uint32_t i = 0; i < count; ++i) {
    StreamHandle stream = nullptr;
    if (green_ != nullptr) {
      BUBBLESIM_CUDA(driver, green_stream, &stream, green_, kStreamNonBlocking, priority);
    } else {
      BUBBLESIM_CUDA(driver, stream_create, &stream, kStreamNonBlocking, priority);
    }
    streams_.push_back(stream);
  }
  return {};
}

StreamSet::~StreamSet() {
  const Driver& driver = context_.driver();
  for (StreamHandle stream : streams_) (void)driver.stream_destroy(stream);
  if (green_ == nullptr) return;
  (void)driver.set_current(context_.primary());
  (void)driver.green_destroy(green_);
  FreeSms& all = free_sms();
  const std::lock_guard lock(all.mutex);
  FreeSms::Left& left = all.left[context_.device()];
  if (--left.users > 0) return;
  for (GreenHandle holder : left.holders) (void)driver.green_destroy(holder);
  left.holders.clear();
}

}  // namespace bubblesim::capture::cuda

#include "capture/record/cupti/enabled_set.hpp"

namespace bubblesim::capture {

cupti::Result EnabledSet::keep(cupti::Result result, const Entry& entry) {
  if (result != cupti::Result::kSuccess) return result;
  entries_.push_back(entry);
  records_ |= entry.what != What::kCallback;
  return result;
}

cupti::Result EnabledSet::callback(cupti::Subscriber subscriber, std::uint32_t domain,
                                   std::uint32_t id) {
  if (api_.enable_callback == nullptr) return cupti::Result::kNotImplemented;
  return keep(api_.enable_callback(1, subscriber, domain, id),
              {What::kCallback, id, domain, subscriber});
}

cupti::Result EnabledSet::kind(std::uint32_t kind) {
  return keep(api_.enable(kind), {What::kKind, kind});
}

cupti::Result EnabledSet::kind_and_dump(std::uint32_t wanted) {
  if (api_.enable_and_dump == nullptr) return kind(wanted);
  return keep(api_.enable_and_dump(wanted), {What::kKind, wanted});
}

cupti::Result EnabledSet::leave_out_runtime_call(std::uint32_t id) {
  if (api_.enable_runtime_api == nullptr) return cupti::Result::kNotImplemented;
  return api_.enable_runtime_api(id, 0);
}

cupti::Result EnabledSet::leave_out_driver_call(std::uint32_t id) {
  if (api_.enable_driver_api == nullptr) return cupti::Result::kNotImplemented;
  return api_.enable_driver_api(id, 0);
}

cupti::Result EnabledSet::off(const Entry& entry) const noexcept {
  switch (entry.what) {
    case What::kCallback:
      return api_.enable_callback(0, entry.subscriber, entry.domain, entry.id);
    case What::kKind:
      return api_.disable(entry.id);
  }
  return cupti::Result::kInvalidParameter;
}

bool EnabledSet::switch_off() noexcept {
  bool all = true;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    all &= off(*entry) == cupti::Result::kSuccess;
  entries_.clear();
  records_ = false;
  return all;
}

}  // namespace bubblesim::capture

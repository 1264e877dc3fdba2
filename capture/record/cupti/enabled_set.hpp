// What a session has switched on in CUPTI, so that all of it is switched off in reverse order.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/record/cupti/api.hpp"

namespace bubblesim::capture {

class EnabledSet {
 public:
  explicit EnabledSet(const CuptiApi& api) : api_(api) {}
  EnabledSet(const EnabledSet&) = delete;
  EnabledSet& operator=(const EnabledSet&) = delete;

  [[nodiscard]] cupti::Result callback(cupti::Subscriber subscriber, std::uint32_t domain,
                                       std::uint32_t id);
  [[nodiscard]] cupti::Result kind(std::uint32_t kind);
  /// Enables like kind(), and CUPTI writes records of what exists already. Without such a function:
  /// kind().
  [[nodiscard]] cupti::Result kind_and_dump(std::uint32_t kind);
  /// Leaves this call out of the records of a kind that is on. Nothing needs to be switched back at
  /// the end: CUPTI forgets it when the kind is enabled again. kNotImplemented: this CUPTI has no
  /// such function.
  [[nodiscard]] cupti::Result leave_out_runtime_call(std::uint32_t id);
  [[nodiscard]] cupti::Result leave_out_driver_call(std::uint32_t id);

  [[nodiscard]] bool records_anything() const { return records_; }
  /// False: some of it refused; the rest is off.
  bool switch_off() noexcept;

 private:
  enum class What : std::uint8_t { kCallback, kKind };
  struct Entry {
    What what;
    std::uint32_t id = 0;
    std::uint32_t domain = 0;
    cupti::Subscriber subscriber = nullptr;
  };
  cupti::Result keep(cupti::Result result, const Entry& entry);
  cupti::Result off(const Entry& entry) const noexcept;

  const CuptiApi& api_;
  std::vector<Entry> entries_;
  bool records_ = false;
};

}  // namespace bubblesim::capture

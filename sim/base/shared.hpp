// An immutable value: copies share one object, on any thread. To change a value, assign a changed
// copy.
#pragma once

#include <memory>
#include <utility>

namespace bubblesim {

template <class T>
class Shared {
 public:
  Shared() : value_(std::make_shared<const T>()) {}
  Shared(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  /// `value` is not null; it may point to a part of a larger object that it keeps alive.
  explicit Shared(std::shared_ptr<const T> value) : value_(std::move(value)) {}

  [[nodiscard]] const T& operator*() const { return *value_; }
  [[nodiscard]] const T* operator->() const { return value_.get(); }

 private:
  std::shared_ptr<const T> value_;  // shared: runs of many threads read one program
};

}  // namespace bubblesim

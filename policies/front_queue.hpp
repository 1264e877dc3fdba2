// A queue in one array: items are pushed at the back, popped at the front, read by index. It
// allocates only beyond its greatest length so far.
#pragma once

#include <cstddef>
#include <vector>

namespace bubblesim::policies {

template <class Item>
class FrontQueue {
 public:
  [[nodiscard]] bool empty() const { return front_ == items_.size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - front_; }
  [[nodiscard]] auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(front_); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] Item& operator[](std::size_t place) { return items_[front_ + place]; }
  [[nodiscard]] const Item& front() const { return items_[front_]; }

  void push_back(const Item& item) {
    // Popped items are erased when they fill half of the array: each item moves at most once.
    if (items_.size() == items_.capacity() && 2 * front_ >= items_.size()) {
      items_.erase(items_.begin(), begin());
      front_ = 0;
    }
    items_.push_back(item);
  }
  /// Precondition: not empty.
  void pop_front() {
    if (++front_ < items_.size()) return;
    items_.clear();
    front_ = 0;
  }

 private:
  std::vector<Item> items_;
  std::size_t front_ = 0;
};

}  // namespace bubblesim::policies

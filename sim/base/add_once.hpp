// Lists that hold each item once, in the order of first insertion. For short lists: each insertion
// searches the list from the front.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

namespace bubblesim {

template <class T>
void add_once(std::vector<T>& list, const std::type_identity_t<T>& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace bubblesim

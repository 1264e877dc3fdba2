// Interning: each distinct value is stored once and has a small id, in order of first use.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.hpp"

namespace bubblesim::traces {

/// Strings by id. Copyable; the index points into a deque, whose elements never move.
class StringTable {
 public:
  StringTable() = default;
  StringTable(const StringTable& other) { *this = other; }
  StringTable& operator=(const StringTable& other) {
    if (this == &other) return *this;
    strings_.clear();
    index_.clear();
    for (const std::string& text : other.strings_) intern(text);
    return *this;
  }
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  ~StringTable() = default;

  NameId intern(std::string_view text) {
    if (const auto found = index_.find(text); found != index_.end()) return found->second;
    const NameId id{static_cast<std::uint32_t>(strings_.size())};
    strings_.emplace_back(text);
    index_.emplace(strings_.back(), id);
    return id;
  }
  [[nodiscard]] const std::string& operator[](NameId id) const { return strings_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, NameId> index_;
};

/// Ordered values by id.
template <class Shape>
class ShapeTable {
 public:
  ShapeId intern(const Shape& shape) {
    const auto [place, fresh] =
        index_.try_emplace(shape, ShapeId{static_cast<std::uint32_t>(shapes_.size())});
    if (fresh) shapes_.push_back(shape);
    return place->second;
  }
  [[nodiscard]] const Shape& operator[](ShapeId id) const { return shapes_[id.index()]; }
  [[nodiscard]] std::size_t size() const { return shapes_.size(); }

 private:
  std::vector<Shape> shapes_;
  std::map<Shape, ShapeId> index_;
};

}  // namespace bubblesim::traces

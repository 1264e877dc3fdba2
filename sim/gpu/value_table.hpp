// Interns vectors that have a value for each SM: equal vectors share one id, which is quick to
// compare and copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/gpu/by_sm.hpp"
#include "sim/gpu/hash_index.hpp"

namespace bubblesim::gpu {

template <class T>
class ValueTable {
 public:
  using Value = BySm<T>;
  using Id = StrongId<Value>;

  /// Id{} is the vector in which every SM has T{}. It is never forgotten.
  explicit ValueTable(std::uint32_t sms) { id_of(Value(sms)); }

  Id id_of(const Value& value);
  /// Valid until the next call of id_of().
  const Value& operator[](Id id) const { return values_[id.index()]; }

  /// Replaces an owner's id and counts the owners of each id. An owner keeps its id across
  /// forget_others(); it starts with Id{}, and finally replaces its last id by Id{}.
  void replace(Id& id, Id next) {
    ++mentions_[next.index()];
    --mentions_[std::exchange(id, next).index()];
  }
  /// From now on ids without an owner may get other values.
  void forget_others();
  [[nodiscard]] std::size_t size() const { return values_.size() - free_.size(); }

 private:
  std::vector<Value> values_;            ///< by id
  std::vector<std::uint32_t> mentions_;  ///< owners, by id; unused for Id{}
  std::vector<std::uint32_t> free_;      ///< ids without a value
  HashIndex index_;
};

template <class T>
typename ValueTable<T>::Id ValueTable<T>::id_of(const Value& value) {
  const std::uint64_t hash = value.hash();
  std::uint32_t at = index_.find(
      hash, [&](std::uint32_t position) { return values_[position] == value; });
  if (at != HashIndex::kNowhere) return Id{at};
  if (free_.empty()) {
    at = static_cast<std::uint32_t>(values_.size());
    values_.push_back(value);
    mentions_.push_back(0);
  } else {
    at = free_.back();
    free_.pop_back();
    values_[at] = value;
  }
  index_.add(hash, at);
  return Id{at};
}

template <class T>
void ValueTable<T>::forget_others() {
  free_.clear();
  index_.clear();
  for (std::uint32_t at = 0; at < values_.size(); ++at) {
    if (at > 0 && mentions_[at] == 0) {
      free_.push_back(at);
    } else {
      index_.add(values_[at].hash(), at);
    }
  }
}

}  // namespace bubblesim::gpu

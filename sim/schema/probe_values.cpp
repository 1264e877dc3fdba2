#include "sim/schema/probe_values.hpp"

#include <algorithm>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::schema {
namespace {

struct ProbeValues {
  std::vector<Json> operator()(const AnyShape&) const {
    return {true, 1, "x", Json::object(), Json::array()};
  }
  std::vector<Json> operator()(const TextShape&) const { return {"x"}; }
  std::vector<Json> operator()(const FlagShape&) const { return {true, false}; }
  std::vector<Json> operator()(const ObjectShape&) const { return {Json::object()}; }
  std::vector<Json> operator()(const ChoiceShape& shape) const {
    return {shape.names.begin(), shape.names.end()};
  }
  std::vector<Json> operator()(const DefinedShape&) const { return {}; }
  template <class Integer>
    requires std::integral<Integer>
  std::vector<Json> operator()(const Range<Integer>& range) const {
    const Integer low = std::max(range.low, Integer{0});
    return {low < range.high ? low + 1 : range.high};
  }
  std::vector<Json> operator()(const Range<double>& range) const {
    const double low = std::max(range.low, 0.0);
    return {(low + std::min(range.high, low + 2)) / 2};
  }
  std::vector<Json> operator()(const Range<Duration>& range) const {
    return {format_duration(std::min(range.high, range.low + Duration{1}))};
  }
  std::vector<Json> operator()(const Range<Bytes>& range) const {
    return {format_bytes(std::min(range.high, Bytes{range.low.value + 1}))};
  }
  std::vector<Json> operator()(const Range<BytesPerSecond>& range) const {
    return {format_rate(std::min(range.high, BytesPerSecond{range.low.value + 1}))};
  }
};

}  // namespace

std::vector<Json> probe_values(JsonCount count, const JsonShape& shape) {
  std::vector<Json> values = std::visit(ProbeValues{}, shape);
  if (count == JsonCount::kOne) return values;
  std::vector<Json> lists{Json::array()};
  for (Json& value : values) lists.push_back(Json::array({std::move(value)}));
  return lists;
}

}  // namespace bubblesim::schema

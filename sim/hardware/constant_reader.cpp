#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::hardware {

ObjectReader constant(ObjectReader& parent, std::string_view key, Presence presence) {
  ObjectReader out = parent.child(key, presence);
  if (!out.present()) return out;
  const bool found =
      out.require("source", "this constant has no \"source\"; expected where its value comes from");
  if (found && out.text("source").empty()) {
    out.fault("source", "found no text; expected where the value comes from");
  }
  return out;
}

void check_unit(ObjectReader& constant, std::string_view unit) {
  if (constant.present()) constant.expect("unit", unit);
}

std::uint32_t count(ObjectReader& parent, std::string_view key, std::string_view unit) {
  ObjectReader reader = constant(parent, key);
  check_unit(reader, unit);
  return reader.integer<std::uint32_t>("value", {1, kMaxCount});
}

double number(ObjectReader& parent, std::string_view key, std::string_view unit,
              Range<double> range) {
  ObjectReader reader = constant(parent, key);
  check_unit(reader, unit);
  return reader.number("value", range);
}

}  // namespace bubblesim::hardware

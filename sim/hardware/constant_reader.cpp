#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::hardware {

ObjectReader constant(ObjectReader& parent, std::string_view key, Presence presence) {
  ObjectReader out = parent.child(key, presence);
  if (!out.present()) return out;
  if (!out.has("source")) {
    out.fault("", "this constant has no \"source\"; expected where its value comes from");
  } else if (out.text("source").empty()) {
    out.fault("source", "found no text; expected where the value comes from");
  }
  return out;
}

void check_unit(ObjectReader& constant, std::string_view unit) {
  if (!constant.present()) return;
  const std::string found = constant.text("unit");
  if (!found.empty() && found != unit) {
    constant.fault("unit", "found \"" + found + "\"; expected \"" + std::string(unit) + "\"");
  }
}

}  // namespace bubblesim::hardware

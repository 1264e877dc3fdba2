#include "sim/base/result.hpp"

namespace bubblesim {

std::string Error::text() const {
  std::string out;
  for (const std::string* part : {&file, &place}) {
    if (!part->empty()) out += *part + ": ";
  }
  return out + message;
}

}  // namespace bubblesim

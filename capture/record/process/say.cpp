#include "capture/record/process/say.hpp"

#include <unistd.h>

namespace bubblesim::capture {

void say(const std::string& text) noexcept {
  try {
    std::string line = "bubblesim capture: " + text;
    for (char& letter : line) {
      if (letter == '\n') letter = ' ';
    }
    line += '\n';
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  } catch (...) {
    return;  // no memory for a sentence
  }
}

}  // namespace bubblesim::capture

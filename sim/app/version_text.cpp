#include "sim/app/version_text.hpp"

#include <bubblesim_build.hpp>  // made by the configuration: scripts/cmake/features.cmake
#include "sim/sweep/program_version.hpp"

namespace bubblesim::app {

std::string release_number() { return BUBBLESIM_VERSION; }

std::string version_text() {
  std::string text = "bubblesim " + sweep::program_version() + "\ncompiler: " BUBBLESIM_COMPILER;
  const auto add = [&text](const char* what, const std::string& names) {
    if (!names.empty()) text += std::string("\n") + what + ": " + names;
  };
  add("with", BUBBLESIM_WITH);
  add("without", BUBBLESIM_WITHOUT);
  return text;
}

}  // namespace bubblesim::app

// Writes the sample files below the folder given: `bubblesim_make_samples traces/samples`.
#include <iostream>

#include "tests/samples/samples.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bubblesim_make_samples FOLDER\n";
    return 2;
  }
  const auto paths = bubblesim::traces::write_samples(argv[1]);
  if (!paths) {
    std::cerr << paths.error().text() << '\n';
    return 1;
  }
  for (const std::string& path : *paths) std::cout << path << '\n';
  return 0;
}

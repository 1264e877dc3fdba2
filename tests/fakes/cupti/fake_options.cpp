#include "tests/fakes/cupti/fake_options.hpp"

#include <cstdlib>
#include <sstream>

namespace fake {

Options::Options(const char* text) {
  std::istringstream in(text == nullptr ? "" : text);
  for (std::string item; std::getline(in, item, ',');) {
    const std::size_t equals = item.find('=');
    values_[item.substr(0, equals)] = equals == std::string::npos ? "1" : item.substr(equals + 1);
  }
}

std::uint64_t Options::number(const std::string& name, std::uint64_t otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : std::stoull(found->second);
}

std::string Options::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

const Options& options() {
  static const Options* const one = new Options(std::getenv("FAKE_CUPTI"));
  return *one;
}

}  // namespace fake

#include "traces/names/demangled.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace bubblesim::traces {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

}  // namespace

std::string demangled(const char* name) {
  int status = -1;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  // It also takes names of types: a C function "f" would be "float".
  const bool function = std::string_view(name).starts_with("_Z");
  return function && status == 0 && text ? text.get() : name;
}

}  // namespace bubblesim::traces

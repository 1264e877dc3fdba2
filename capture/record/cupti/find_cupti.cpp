#include <dlfcn.h>


#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/cupti_places.hpp"
#include "sim/base/input_file.hpp"

namespace bubblesim::capture {
namespace {

constexpr const char* kMaps = "/proc/self/maps";

/// Handles are kept for the process's life: a CUPTI that is unloaded takes callbacks with it.
void* open_place(const CuptiPlace& place) {
  const int mapped = place.mapped_only ? RTLD_NOLOAD : 0;
  return ::dlopen(place.path.c_str(), RTLD_NOW | RTLD_LOCAL | mapped);
}

std::string list_of(const std::vector<CuptiPlace>& places) {
  std::string text;
  for (const CuptiPlace& place : places) {
    if (place.mapped_only) continue;
    text += (text.empty() ? "" : ", ") + place.path;
  }
  return text;
}

}  // namespace

Result<CuptiApi> find_cupti(const std::string& wanted, const std::string& cuda_home) {
  const std::string maps = read_text_file(kMaps).value_or(std::string());
  const std::vector<CuptiPlace> places = cupti_places(wanted, cuda_home, maps);
  for (const CuptiPlace& place : places) {
    if (void* const library = open_place(place)) return bind_cupti(library, place.path);
    if (place.path != wanted) continue;
    const char* const why = ::dlerror();
    return fail(wanted, {}, std::string("cannot load this libcupti: ") +
                                (why != nullptr ? why : "the loader does not say why"));
  }
  return fail("found no libcupti; looked among the libraries of the process and for " +
              list_of(places));
}

}  // namespace bubblesim::capture

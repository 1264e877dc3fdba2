#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "capture/record/cupti/api.hpp"
#include "sim/base/dynamic_functions.hpp"
#include "sim/base/input_file.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::array kNames{"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

/// The paths of mapped files, each once, in order of address.
std::vector<std::string_view> mapped_paths(std::string_view maps) {
  std::vector<std::string_view> paths;
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view path = line.substr(slash);
    if (paths.empty() || paths.back() != path) paths.push_back(path);
  }
  return paths;
}

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }
std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class Places {
 public:
  void add(std::string path, bool mapped_only) {
    CuptiPlace place{std::move(path), mapped_only};
    if (std::find(places_.begin(), places_.end(), place) == places_.end())
      places_.push_back(std::move(place));
  }
  void add_folder(const std::string& folder) {
    for (const char* const name : kNames) add(folder + "/" + name, false);
  }
  [[nodiscard]] std::vector<CuptiPlace> take() && { return std::move(places_); }

 private:
  std::vector<CuptiPlace> places_;
};

void add_mapped(const std::vector<std::string_view>& paths, Places& places) {
  for (const char* const name : kNames) places.add(name, true);
  for (const std::string_view path : paths)
    if (file_of(path).starts_with("libcupti.so")) places.add(std::string(path), true);
}

/// Beside the CUDA runtime, and where PyTorch's wheels keep CUPTI: in site-packages, beside
/// torch/lib or nvidia/cuda_runtime/lib, nvidia/cuda_cupti/lib (12) or nvidia/cu13/lib (13).
void add_beside(const std::vector<std::string_view>& paths, Places& places) {
  for (const std::string_view path : paths) {
    const std::string_view file = file_of(path);
    const bool runtime = file.starts_with("libcudart.so");
    if (!runtime && !file.starts_with("libtorch_cuda.so")) continue;
    const std::string folder(folder_of(path));
    places.add_folder(folder);
    const std::string parent(folder_of(folder_of(folder)));  // of .../nvidia/x/lib or .../torch/lib
    places.add_folder(parent + (runtime ? "/cuda_cupti/lib" : "/nvidia/cu13/lib"));
    if (!runtime) places.add_folder(parent + "/nvidia/cuda_cupti/lib");
  }
}

void add_toolkit(const std::string& root, Places& places) {
  places.add_folder(root + "/lib64");
  places.add_folder(root + "/extras/CUPTI/lib64");
}

}  // namespace

std::vector<CuptiPlace> cupti_places(const std::string& wanted, const std::string& cuda_home,
                                     std::string_view maps) {
  Places places;
  if (!wanted.empty()) {
    places.add(wanted, false);
    return std::move(places).take();
  }
  const std::vector<std::string_view> paths = mapped_paths(maps);
  add_mapped(paths, places);
  add_beside(paths, places);
  if (!cuda_home.empty()) add_toolkit(cuda_home, places);
  add_toolkit("/usr/local/cuda", places);
  for (const char* const name : kNames) places.add(name, false);
  return std::move(places).take();
}

namespace {

/// The path from which the loader loaded it; the name asked for, if the loader does not tell.
std::string path_of(const void* function, const std::string& asked) {
  Dl_info info{};
  if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return asked;
  return info.dli_fname;
}

}  // namespace

Result<CuptiApi> bind_cupti(void* library, const std::string& path) {
  CuptiApi api;
  FunctionFinder bind(library);
#define BUBBLESIM_CUPTI_BIND(name, presence, symbol, args) bind.presence(api.name, #symbol);
  BUBBLESIM_CUPTI(BUBBLESIM_CUPTI_BIND)
#undef BUBBLESIM_CUPTI_BIND
  if (bind.missing() != nullptr) {
    return fail(path, {}, std::string("has no ") + bind.missing() +
                              "; expected a libcupti of CUDA 11.2 or later");
  }
  api.path = path_of(reinterpret_cast<const void*>(api.get_version), path);
  if (api.get_version(&api.version) != cupti::Result::kSuccess) {
    return fail(api.path, {}, "cuptiGetVersion failed; expected a libcupti of CUDA 11.2 or later");
  }
  return api;
}

namespace {

constexpr const char* kMaps = "/proc/self/maps";

/// Handles are kept for the process's life: callbacks would call into an unloaded CUPTI.
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

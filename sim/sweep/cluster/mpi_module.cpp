#include "sim/sweep/cluster/mpi_module.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace bubblesim::sweep {
namespace {

Result<void*> load(const std::vector<std::string>& folders) {
  std::string looked;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + kMpiModule;
    std::error_code fault;
    if (!std::filesystem::exists(path, fault)) {
      looked += (looked.empty() ? "" : ", ") + folder;
      continue;
    }
    // Global: parts of MPI that it loads itself look for its symbols.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) return fail(path, {}, std::string("does not load: ") + dlerror());
    return module;
  }
  return fail("there is no " + std::string(kMpiModule) + " in " + looked +
              ": this program was built without MPI (Debian: libopenmpi-dev, libboost-mpi-dev)");
}

}  // namespace

Result<std::unique_ptr<Transport>> join_mpi(const std::vector<std::string>& folders) {
  BUBBLESIM_ASSIGN_OR_RETURN(void* const module, load(folders));
  void* const symbol = dlsym(module, kMpiFunction);
  if (symbol == nullptr) {
    return fail(kMpiModule, {}, "is of another version of this program: it has no " +
                                    std::string(kMpiFunction));
  }
  std::string why;
  const auto keep = [](const char* text, void* to) { *static_cast<std::string*>(to) = text; };
  const auto join = reinterpret_cast<MpiTransportFunction>(symbol);
  std::unique_ptr<Transport> transport(join(keep, &why));
  if (!transport) return fail("MPI does not start: " + why);
  return transport;
}

}  // namespace bubblesim::sweep

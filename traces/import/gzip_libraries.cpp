// The choice of a library; BUBBLESIM_HAS_ISAL comes from the CMakeLists.txt beside this file.
#include <array>

#include "traces/import/gzip_inflater.hpp"

namespace bubblesim::traces {

std::span<const GzipLibrary> gzip_libraries() {
  static constexpr std::array kLibraries{
#ifdef BUBBLESIM_HAS_ISAL
      GzipLibrary{"ISA-L", make_isal_inflater},
#endif
      GzipLibrary{"zlib", make_zlib_inflater},
  };
  return kLibraries;
}

}  // namespace bubblesim::traces

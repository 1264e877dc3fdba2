// The paths at which libcupti may be, in the order in which they are tried.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblesim::capture {

struct CuptiPlace {
  std::string path;          ///< a path, or a name that the loader looks for
  bool mapped_only = false;  ///< only if the process has it already
  friend bool operator==(const CuptiPlace&, const CuptiPlace&) = default;
};

/// `maps`: the text of /proc/self/maps. `wanted`, if not empty, is the only place. `cuda_home` may
/// be empty.
[[nodiscard]] std::vector<CuptiPlace> cupti_places(const std::string& wanted,
                                                   const std::string& cuda_home,
                                                   std::string_view maps);

}  // namespace bubblesim::capture

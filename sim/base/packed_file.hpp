// Files that may be packed by gzip, which their content says and not their name. It is a target of
// its own, `packed_file`, since jobs and policies link sim/base without zlib.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim {

/// Hands the file's bytes on, unpacked and in pieces, until the end or a fault of the taker.
/// Fault: the file cannot be opened or read to its end, or its compression is damaged.
[[nodiscard]] Result<void> read_packed_file(
    const std::string& path, const std::function<Result<void>(std::string_view)>& take);

/// The whole file, unpacked. Fault too: more than `most_mib` MiB, where `expected` was.
[[nodiscard]] Result<std::string> read_packed_text(const std::string& path, std::size_t most_mib,
                                                   std::string_view expected);

}  // namespace bubblesim

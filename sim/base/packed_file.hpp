// Files that may be packed by gzip, as their content shows, not their name. It is a target of its
// own, `packed_file`, so that jobs and policies can link sim/base without zlib.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim {

/// Hands on the file's bytes, unpacked and in pieces, until the end or a fault of the taker. Fault:
/// the file cannot be opened or read to its end, or its compression is damaged.
[[nodiscard]] Result<void> read_packed_file(
    const std::string& path, const std::function<Result<void>(std::string_view)>& take);

/// The whole file, unpacked. More than `most_mib` MiB are a fault, too, which names `expected`.
[[nodiscard]] Result<std::string> read_packed_text(const std::string& path, std::size_t most_mib,
                                                   std::string_view expected);

}  // namespace bubblesim

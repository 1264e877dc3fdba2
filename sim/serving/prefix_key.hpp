// Keys of cache blocks: what two requests share has the same keys, nothing else does.
#pragma once

#include <cstdint>

#include "sim/serving/block_pool.hpp"
#include "sim/serving/request.hpp"

namespace bubblesim::serving {

/// The key of the request's `block`-th block of `block_size` tokens. Of what the request shares
/// (SharedPrefix) it depends on the tokens; of the rest on `life`, which no other request has.
/// Keys are hashes of 64 bits: two blocks collide with a chance of about 2^-64.
[[nodiscard]] BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                                 std::uint32_t block_size);

}  // namespace bubblesim::serving

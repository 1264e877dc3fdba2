// Keys of cache blocks: what two requests share has the same keys, nothing else does; also random
// draws by hashes, which need no state.
#pragma once

#include <cstdint>

#include "sim/serving/block_pool.hpp"
#include "sim/serving/request.hpp"

namespace bubblesim::serving {

/// The key of the request's `block`-th block of `block_size` tokens. Blocks that the request shares
/// (SharedPrefix) have keys that depend on their tokens alone; keys of its other blocks depend on
/// `life`, which no other request has. Keys are hashes of 64 bits: two blocks collide with a chance
/// of about 2^-64.
[[nodiscard]] BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                                 std::uint32_t block_size);

/// A number in [0, 1) that depends on these three alone.
[[nodiscard]] double uniform_of(std::uint64_t seed, std::uint64_t request, std::uint64_t place);

}  // namespace bubblesim::serving

#include "sim/serving/prefix_key.hpp"

#include "sim/base/hash.hpp"

namespace bubblesim::serving {
namespace {

enum class Owner : std::uint64_t { kRequest = 1, kConversation = 2, kHash = 3 };

BlockKey key(Owner owner, std::uint64_t id, std::uint32_t block) {
  const std::uint64_t owner_key = splitmix64(id + splitmix64(static_cast<std::uint64_t>(owner)));
  const BlockKey found = splitmix64(owner_key + block + 1);
  return found == 0 ? 1 : found;
}

}  // namespace

double uniform_of(std::uint64_t seed, std::uint64_t request, std::uint64_t place) {
  const std::uint64_t bits = splitmix64(splitmix64(splitmix64(seed + 1) + request) + place);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

BlockKey block_key(const Request& request, std::uint64_t life, std::uint32_t block,
                   std::uint32_t block_size) {
  const SharedPrefix& prefix = request.prefix;
  if (prefix.conversation) return key(Owner::kConversation, *prefix.conversation, block);
  const std::uint64_t end = (std::uint64_t{block} + 1) * block_size;
  if (prefix.tokens_per_hash > 0 && end <= request.prompt_tokens) {
    const std::uint64_t hash = (end - 1) / prefix.tokens_per_hash;
    if (hash < prefix.hashes.size()) return key(Owner::kHash, prefix.hashes[hash], block);
  }
  return key(Owner::kRequest, life, block);
}

}  // namespace bubblesim::serving

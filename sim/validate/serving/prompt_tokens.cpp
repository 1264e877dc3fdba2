#include "sim/validate/serving/prompt_tokens.hpp"

#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/validate/serving/text_lines.hpp"

namespace bubblesim::validate {
namespace {

using Tokens = std::vector<std::uint32_t>;

constexpr std::uint64_t kMostTokenId = std::numeric_limits<std::uint32_t>::max();

/// Numbers for blocks of tokens: the same one for the same tokens behind the same block.
class BlockNumbers {
 public:
  explicit BlockNumbers(std::uint32_t block_size) : block_size_(block_size) {}

  /// Of the blocks that the tokens fill, from the first on.
  std::vector<std::uint64_t> numbers_of(const Tokens& tokens) {
    std::vector<std::uint64_t> numbers;
    std::uint64_t before = 0;
    for (std::size_t end = block_size_; end <= tokens.size(); end += block_size_) {
      const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(end - block_size_);
      Tokens block(first, first + block_size_);
      before = numbers_.try_emplace({before, std::move(block)}, numbers_.size() + 1).first->second;
      numbers.push_back(before);
    }
    return numbers;
  }

 private:
  std::size_t block_size_;
  std::map<std::pair<std::uint64_t, Tokens>, std::uint64_t> numbers_;
};

/// Token ids of a line; nothing: it has none.
std::optional<Tokens> tokens_of(std::string_view line) {
  const Json request = Json::parse(line, nullptr, false);
  if (!request.is_object() || !request.contains("input_tok_ids")) return std::nullopt;
  const Json& ids = request["input_tok_ids"];
  if (!ids.is_array()) return std::nullopt;
  Tokens tokens;
  tokens.reserve(ids.size());
  for (const Json& id : ids) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMostTokenId) return std::nullopt;
    tokens.push_back(id.get<std::uint32_t>());
  }
  return tokens;
}

std::unordered_map<std::string, MeasuredRequest*> by_id(ServingBundle& bundle) {
  std::unordered_map<std::string, MeasuredRequest*> out;
  for (MeasuredRequest& request : bundle.requests) out.emplace(request.id, &request);
  return out;
}

}  // namespace

Result<void> add_prompt_tokens(ServingBundle& bundle, const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  const auto requests = by_id(bundle);
  const std::uint32_t block_size =
      bundle.settings.block_size.value_or(serving::SchedulerSpec{}.block_size);
  BlockNumbers blocks(block_size);
  std::size_t lines = 0;
  const auto add = [&](std::string_view line, std::size_t number) -> Result<void> {
    const auto tokens = tokens_of(line);
    const std::string place = "line " + std::to_string(number);
    if (!tokens) {
      return fail(path, place,
                  "has no token ids; expected a list \"input_tok_ids\" of numbers below 2^32");
    }
    const auto found = requests.find("bench-" + std::to_string(lines++));
    if (found == requests.end()) {
      return fail(path, place, "found a request that was not measured; expected the " +
                                   std::to_string(requests.size()) + " of the bundle");
    }
    MeasuredRequest& measured = *found->second;
    if (tokens->size() != measured.prompt_tokens) {
      return fail(path, place, "found " + std::to_string(tokens->size()) + " tokens; " +
                                   measured.id + " was measured with " +
                                   std::to_string(measured.prompt_tokens));
    }
    measured.shared.hashes = blocks.numbers_of(*tokens);
    measured.shared.tokens_per_hash = block_size;
    return {};
  };
  BUBBLESIM_RETURN_IF_ERROR(each_line(text, add));
  if (lines < requests.size()) {
    return fail(path, {}, "found " + std::to_string(lines) + " requests; expected the " +
                              std::to_string(requests.size()) + " of the bundle");
  }
  bundle.prompts_known = true;
  return {};
}

}  // namespace bubblesim::validate

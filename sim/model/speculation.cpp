#include "sim/model/speculation.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "sim/model/decoder_work.hpp"

namespace bubblesim::model {
namespace {

constexpr std::uint64_t kMaxTreeTokens = 65536;

}  // namespace

TokenTree chain(std::uint32_t depth) { return TokenTree{std::vector<std::uint32_t>(depth, 1)}; }

Result<std::uint64_t> token_count(const TokenTree& tree) {
  if (tree.expansion.empty()) return fail("a token tree without levels; expected at least 1");
  std::uint64_t level = 1;
  std::uint64_t tokens = 0;
  for (const std::uint32_t children : tree.expansion) {
    if (children == 0) return fail("a level of a token tree has no children; expected at least 1");
    level *= children;
    tokens += level;
    if (tokens > kMaxTreeTokens) {
      return fail("a token tree of more than " + std::to_string(kMaxTreeTokens) + " tokens");
    }
  }
  return tokens;
}

Result<ModelWork> verify_work(const ModelSpec& large, const Split& split, Precision precision,
                              std::uint32_t sequences, std::uint64_t context,
                              const TokenTree& tree) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t tokens, token_count(tree));
  DecoderBatch batch;
  batch.sequences.assign(sequences, SequenceState{tokens + 1, context});
  batch.logits = Logits::kEveryToken;
  batch.mask = NewTokenMask::kTree;
  return decoder_work(large, split, precision, batch);
}

Result<SpeculationWork> speculation_work(const ModelSpec& large, const ModelSpec& draft,
                                         const SpeculationShape& shape, const TokenTree& tree) {
  SpeculationWork out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.verify,
                             verify_work(large, shape.split, shape.precision, shape.sequences,
                                         shape.context, tree));
  std::uint64_t parents = 1;
  std::uint64_t cached = shape.context;
  for (const std::uint32_t children : tree.expansion) {
    DecoderBatch batch;
    batch.sequences.assign(shape.sequences, SequenceState{parents, cached});
    batch.logits = Logits::kEveryToken;
    batch.mask = NewTokenMask::kTree;
    BUBBLESIM_ASSIGN_OR_RETURN(
        ModelWork step, decoder_work(draft, shape.draft_split, shape.precision, batch));
    out.draft.push_back(std::move(step));
    cached += parents;
    parents *= children;
  }
  return out;
}

Result<double> expected_accepted(double acceptance_rate, const TokenTree& tree) {
  if (!(acceptance_rate >= 0.0 && acceptance_rate <= 1.0)) {
    return fail("acceptance rate " + std::to_string(acceptance_rate) + "; expected 0 to 1");
  }
  BUBBLESIM_RETURN_IF_ERROR(token_count(tree));
  double reached = 1.0;
  double expected = 1.0;
  for (const std::uint32_t children : tree.expansion) {
    reached *= 1.0 - std::pow(1.0 - acceptance_rate, children);
    expected += reached;
  }
  return expected;
}

}  // namespace bubblesim::model

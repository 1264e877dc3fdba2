// Speculative decoding with a token tree (SpecInfer, ASPLOS 2024): a small model drafts a tree of
// tokens level by level, the large model checks all of them in one pass with a mask that shows
// each token its ancestors only.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/inference_work.hpp"

namespace bubblesim::model {

/// Children of each node, by depth: {1, 1, 3, 1} drafts 1, 1, 3 and 3 tokens. SpecInfer's own
/// setting is {1, 1, 3, 1, 1, 1, 1, 1} (section 6.1).
struct TokenTree {
  std::vector<std::uint32_t> expansion;
};

[[nodiscard]] TokenTree chain(std::uint32_t depth);

/// Drafted tokens: the sum over levels. A tree without levels, with a level of no children or of
/// more than 65,536 tokens is a fault.
[[nodiscard]] Result<std::uint64_t> token_count(const TokenTree& tree);

/// What one round launches for `sequences` with `context` tokens cached.
struct SpeculationWork {
  std::vector<ModelWork> draft;  ///< one step a level: its nodes' parents go through the model
  ModelWork verify;              ///< the last known token and the whole tree through the large one
};

struct SpeculationShape {
  Split split;        ///< of the large model
  Split draft_split;
  Precision precision = Precision::kFp16;
  std::uint32_t sequences = 1;
  std::uint64_t context = 0;
};

[[nodiscard]] Result<SpeculationWork> speculation_work(const ModelSpec& large,
                                                       const ModelSpec& draft,
                                                       const SpeculationShape& shape,
                                                       const TokenTree& tree);

/// The checking pass alone.
[[nodiscard]] Result<ModelWork> verify_work(const ModelSpec& large, const Split& split,
                                            Precision precision, std::uint32_t sequences,
                                            std::uint64_t context, const TokenTree& tree);

/// Tokens that a round yields on average, the large model's own token after the last accepted one
/// among them: 1 + sum over levels of the chance that a node of that level is accepted. A child is
/// accepted with `acceptance_rate`, independently of all else; of k children at least one with
/// 1 - (1 - rate)^k. For a chain of depth d that is (1 - rate^(d+1)) / (1 - rate), equation 1 of
/// Leviathan et al. 2023 (Fast inference from transformers via speculative decoding). Independence
/// of siblings is an assumption: it flatters wide trees.
[[nodiscard]] Result<double> expected_accepted(double acceptance_rate, const TokenTree& tree);

}  // namespace bubblesim::model

// Norms as part of the exchange before them, as TokenWeave's kernel does both (arXiv 2505.11329,
// section 4: reduce-scatter, the residual's sum and RMSNorm of a rank's own tokens, all-gather).
#pragma once

#include "sim/model/layer_work.hpp"

namespace bubblesim::synth {

/// Takes the residual's sum and the norm that follow an all-reduce of a block's forward pass out of
/// the layer and adds their bytes to Communication::fused_bytes. The last exchange of a block has
/// the norm fused into it with which the next layer begins; that layer keeps the norm in its list,
/// as the first one of a stage needs it. Backward passes stay as they are.
void fuse_norms(model::ModelWork& work);

}  // namespace bubblesim::synth

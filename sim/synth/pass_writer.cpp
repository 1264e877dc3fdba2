#include "sim/synth/pass_writer.hpp"

#include <cmath>

#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {
namespace {

// 64 bytes each: 1 GiB.
constexpr std::uint64_t kMostKernels = std::uint64_t{1} << 24U;

}  // namespace

Duration copy_time(double bytes) {
  return kCopyLatency + Duration{std::llround(bytes / kHostLink * 1e9)};
}

PassWriter::PassWriter(const InferenceRequest& request)
    : request_(request), timer_(request.gpu, request.efficiency, request.software.slowdown),
      writer_(0, request.gpu),
      call_{request.software.forward_gap, request.software.launch_call} {}

Result<void> PassWriter::pass(const model::ModelWork& work, DecodeMode mode) {
  BUBBLESIM_RETURN_IF_ERROR(add_drafts(work));
  emit(mode);
  return {};
}

Result<void> PassWriter::pass_and_result(const model::ModelWork& work, DecodeMode mode,
                                         double result_bytes) {
  BUBBLESIM_RETURN_IF_ERROR(add_drafts(work));
  drafts_.push_back(copy_draft("result to host", result_bytes));
  writer_.wait_for(emit(mode));
  return {};
}

void PassWriter::copy_to_device(double bytes) {
  writer_.launch(copy_draft("request to device", bytes), {}, call_);
}

std::uint32_t PassWriter::copy_beside() {
  OpDraft draft = copy_draft("swapped blocks", 0);
  draft.stream = 1;
  return writer_.launch(draft, {}, call_);
}

// Layers of one kind are timed once.
Result<void> PassWriter::add_drafts(const model::ModelWork& work) {
  drafts_.clear();
  std::vector<std::vector<OpDraft>> kinds;
  std::vector<double> flops;
  for (const model::LayerWork& kind : work.kinds) {
    std::vector<OpDraft>& drafts = kinds.emplace_back();
    for (const model::WorkItem& item : kind.forward) {
      drafts.push_back(std::visit([this](const auto& what) { return draft_of(what); }, item));
    }
    flops.push_back(model::flops_of(kind.forward));
  }
  for (const std::uint32_t kind : work.layers) {
    drafts_.insert(drafts_.end(), kinds[kind].begin(), kinds[kind].end());
    flops_ += flops[kind];
  }
  kernels_ += drafts_.size();
  if (kernels_ > kMostKernels) {
    return fail(request_.model.name + ": over " + std::to_string(kMostKernels) +
                " kernels for one batch of requests; expected fewer output tokens");
  }
  return {};
}

OpDraft PassWriter::draft_of(const model::KernelWork& work) {
  const TimedKernel timed = timer_.time(work);
  OpDraft draft;
  draft.name = writer_.name(timed.name);
  draft.profile = profiles_.index_of(timed, [&](const auto& profile, const auto& launch) {
    return writer_.add_profile(profile, launch);
  });
  draft.duration = timed.duration;
  return draft;
}

OpDraft PassWriter::draft_of(const model::Communication& what) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCollective;
  draft.name = writer_.name(what.name);
  draft.profile = writer_.add_profile(
      program::profile_kernel(collective_needs(1), program::KernelClass::kMemory, request_.gpu),
      collective_launch(1));
  return draft;
}

OpDraft PassWriter::copy_draft(std::string_view name, double bytes) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCopy;
  draft.name = writer_.name(name);
  draft.duration = copy_time(bytes);
  return draft;
}

std::uint32_t PassWriter::emit(DecodeMode mode) {
  if (mode == DecodeMode::kGraph) return writer_.launch_graph(drafts_, call_);
  std::uint32_t last = program::kNoIndex;
  for (const OpDraft& draft : drafts_) last = writer_.launch(draft, {}, call_);
  return last;
}

}  // namespace bubblesim::synth

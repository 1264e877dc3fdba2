#include "sim/run/server_requests.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/serving/scheduler.hpp"

namespace bubblesim::run {
namespace {

using workload::ListedLengths;
using workload::RecordedLength;

std::string why_not(serving::ArrivalOutcome what, const serving::SchedulerSpec& spec) {
  switch (what) {
    case serving::ArrivalOutcome::kLongerThanWindow:
      return "max_model_len " + std::to_string(spec.max_model_len) + " holds together";
    case serving::ArrivalOutcome::kLargerThanCache:
      return "the KV cache of " + std::to_string(spec.kv_blocks) + " blocks of " +
             std::to_string(spec.block_size) + " tokens holds";
    case serving::ArrivalOutcome::kLargerThanBudget:
      return "max_num_batched_tokens " + std::to_string(spec.max_num_batched_tokens) +
             " computes as a whole";
    case serving::ArrivalOutcome::kQueued: break;
  }
  return {};
}

Result<void> check_length(const RecordedLength& length, const serving::SchedulerSpec& spec,
                          const std::string& file, const std::string& place) {
  serving::Request request;
  request.prompt_tokens = length.prompt_tokens;
  request.output_tokens = length.output_tokens;
  const serving::ArrivalOutcome what = serving::Scheduler::admissible(spec, request);
  if (what == serving::ArrivalOutcome::kQueued) return {};
  return fail(file, place,
              "found a request of " + std::to_string(length.prompt_tokens) + " prompt and " +
                  std::to_string(length.output_tokens) + " output tokens; expected at most what " +
                  why_not(what, spec));
}

Result<RequestsRead> read_file(const std::string& path, workload::ArrivalFormat format,
                               ListedLengths::Pick pick, const serving::SchedulerSpec& spec) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      workload::RecordedArrivals recorded,
      workload::read_arrivals(path, format, workload::Lengths::kRead));
  for (std::size_t i = 0; i < recorded.lengths.size(); ++i) {
    BUBBLESIM_RETURN_IF_ERROR(
        check_length(recorded.lengths[i], spec, path, "request " + std::to_string(i + 1)));
  }
  RequestsRead read{ListedLengths{std::move(recorded.lengths), pick}};
  read.arrivals = std::move(recorded);
  return read;
}

}  // namespace

Result<RequestsRead> server_requests(const FillerConfig& filler,
                                     const serving::SchedulerSpec& spec) {
  const auto& names = *std::get<synth::InferenceNames>(filler.program).engine;
  const auto* arrivals =
      filler.arrivals ? std::get_if<workload::FileArrivals>(&*filler.arrivals) : nullptr;
  if (!names.requests.lengths) {
    return read_file(arrivals->path, arrivals->format, ListedLengths::Pick::kInOrder, spec);
  }
  if (const auto* file = std::get_if<synth::RequestNames::File>(&*names.requests.lengths)) {
    BUBBLESIM_ASSIGN_OR_RETURN(RequestsRead read,
                               read_file(file->path, file->format, file->pick, spec));
    const bool of_arrivals = arrivals != nullptr && arrivals->path == file->path &&
                             arrivals->format == file->format &&
                             file->pick == ListedLengths::Pick::kInOrder;
    if (of_arrivals) return read;
    read.counters = std::move(read.arrivals->counters);
    read.arrivals.reset();
    return read;
  }
  const auto& drawn = std::get<workload::DrawnLengths>(*names.requests.lengths);
  BUBBLESIM_RETURN_IF_ERROR(check_length(workload::largest(drawn), spec, {},
                                         "filler \"" + filler.name + "\": requests"));
  return RequestsRead{drawn};
}

}  // namespace bubblesim::run

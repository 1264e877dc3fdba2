// Capture of streams, and graphs.
#include <algorithm>

#include "tests/fakes/driver/fake_driver_state.hpp"

namespace {

using namespace fake_driver;
using abi::Status;

/// Nodes come in an order in which each comes after those that it waits for.
std::int64_t run_graph(State& all, const FakeGraph& graph, std::int64_t start) {
  std::vector<std::int64_t> ends;
  std::int64_t last = start;
  for (const FakeNode& node : graph.nodes) {
    std::int64_t from = start;
    for (const std::size_t before : node.after) from = std::max(from, ends[before]);
    ends.push_back(run_at(all, node.work, from));
    last = std::max(last, ends.back());
  }
  return last;
}

}  // namespace

FAKE_CALL cuStreamBeginCapture_v2(abi::StreamHandle handle, int) {
  FAKE_ENTER("cuStreamBeginCapture_v2");
  auto made = std::make_unique<FakeGraph>();
  FakeStream& stream = stream_of(all, handle);
  stream.capture = made.get();
  stream.after.clear();
  all.graphs[made.get()] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuStreamEndCapture(abi::StreamHandle handle, abi::GraphHandle* graph) {
  FAKE_ENTER("cuStreamEndCapture");
  FakeGraph* const captured = stream_of(all, handle).capture;
  *graph = reinterpret_cast<abi::GraphHandle>(captured);
  const std::set<std::size_t> joined = stream_of(all, handle).after;
  bool all_joined = true;
  for (auto& [key, stream] : all.streams) {
    if (stream->capture != captured) continue;
    for (const std::size_t node : stream->after) all_joined &= joined.contains(node);
    stream->capture = nullptr;
    stream->after.clear();
  }
  return all_joined ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuGraphDestroy(abi::GraphHandle graph) {
  FAKE_ENTER("cuGraphDestroy");
  return all.graphs.erase(graph) == 1 ? Status::kSuccess : Status::kInvalidValue;
}
FAKE_CALL cuGraphInstantiateWithFlags(abi::GraphExecHandle* exec, abi::GraphHandle graph,
                                      unsigned long long) {
  FAKE_ENTER("cuGraphInstantiateWithFlags");
  auto made = std::make_unique<FakeExec>(FakeExec{*all.graphs.at(graph), 0});
  *exec = reinterpret_cast<abi::GraphExecHandle>(made.get());
  all.execs[*exec] = std::move(made);
  return Status::kSuccess;
}
FAKE_CALL cuGraphLaunch(abi::GraphExecHandle handle, abi::StreamHandle stream_handle) {
  FAKE_ENTER("cuGraphLaunch");
  FakeExec& exec = *all.execs.at(handle);
  FakeStream& stream = stream_of(all, stream_handle);
  const std::int64_t start = std::max({stream.ready, exec.ready, all.now + kLaunchNs});
  stream.ready = exec.ready = run_graph(all, exec.graph, start);
  return Status::kSuccess;
}
FAKE_CALL cuGraphExecDestroy(abi::GraphExecHandle exec) {
  FAKE_ENTER("cuGraphExecDestroy");
  return all.execs.erase(exec) == 1 ? Status::kSuccess : Status::kInvalidValue;
}

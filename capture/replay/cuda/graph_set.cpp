#include "capture/replay/cuda/graph_set.hpp"

#include <algorithm>
#include <bit>

#include "capture/replay/cuda/cuda_counters.hpp"

namespace bubblesim::capture::cuda {

/// One capture, with its events.
class GraphSet::Capture {
 public:
  Capture(const Driver& driver, const JobPlan& plan, const StreamSet& streams,
          const OperationLauncher& launcher, CounterSet& counters)
      : driver_(driver), plan_(plan), streams_(streams), launcher_(launcher),
        counters_(counters) {}

  [[nodiscard]] Result<OwnGraph> run(const Graph& graph) {
    const StreamHandle main = streams_.at(graph.stream);
    BUBBLESIM_CUDA(driver_, begin_capture, main, kCaptureThreadLocal);
    const auto filled = fill(graph, main);
    GraphHandle captured = nullptr;
    const Status ended = driver_.end_capture(main, &captured);
    OwnGraph owned(captured, {&driver_});
    BUBBLESIM_RETURN_IF_ERROR(filled);
    BUBBLESIM_RETURN_IF_ERROR(checked(driver_, ended, "end_capture"));
    return owned;
  }

 private:
  [[nodiscard]] Result<EventHandle> mark(StreamHandle stream) {
    BUBBLESIM_ASSIGN_OR_RETURN(OwnEvent event, make_event(driver_));
    BUBBLESIM_CUDA(driver_, event_record, event.get(), stream);
    return events_.emplace_back(std::move(event)).get();
  }

  /// Other streams join the capture at its start and end in the main stream at its end.
  [[nodiscard]] Result<void> fill(const Graph& graph, StreamHandle main) {
    if (!graph.other_streams.empty()) {
      BUBBLESIM_ASSIGN_OR_RETURN(const EventHandle fork, mark(main));
      for (const std::uint32_t other : graph.other_streams)
        BUBBLESIM_CUDA(driver_, stream_wait_event, streams_.at(other), fork, 0);
    }
    for (std::uint32_t op = graph.first; op < graph.first + graph.count; ++op)
      BUBBLESIM_RETURN_IF_ERROR(add(op, graph));
    for (const std::uint32_t other : graph.other_streams) {
      BUBBLESIM_ASSIGN_OR_RETURN(const EventHandle join, mark(streams_.at(other)));
      BUBBLESIM_CUDA(driver_, stream_wait_event, main, join, 0);
    }
    return {};
  }

  [[nodiscard]] Result<void> add(std::uint32_t op, const Graph& graph) {
    const program::Op& plan = plan_.program.ops[op];
    const StreamHandle stream = streams_.at(plan.stream);
    for (std::uint32_t i = 0; i < plan.edge_count; ++i) {
      const auto& [before, lag, passes_back] = plan_.program.edges[plan.first_edge + i];
      if (passes_back > 0 || before < graph.first || before >= graph.first + graph.count) continue;
      if (before >= op) counters_.add(kEdgesBackwards);
      if (const auto found = ends_.find(before); found != ends_.end() && before < op)
        BUBBLESIM_CUDA(driver_, stream_wait_event, stream, found->second, 0);
    }
    BUBBLESIM_RETURN_IF_ERROR(launcher_.enqueue(op, stream, 1, graph.scale));
    if (!graph.other_streams.empty()) {
      BUBBLESIM_ASSIGN_OR_RETURN(ends_[op], mark(stream));
    }
    return {};
  }

  const Driver& driver_;
  const JobPlan& plan_;
  const StreamSet& streams_;
  const OperationLauncher& launcher_;
  CounterSet& counters_;
  std::vector<OwnEvent> events_;
  std::map<std::uint32_t, EventHandle> ends_;  ///< of the operations so far
};

namespace {

Graph graph_of(const JobPlan& plan, std::uint32_t first, std::uint32_t count) {
  Graph graph;
  graph.first = first;
  graph.count = count;
  graph.stream = plan.program.ops[first].stream;
  for (std::uint32_t op = first; op < first + count; ++op) {
    const program::Op& operation = plan.program.ops[op];
    const auto& others = graph.other_streams;
    if (operation.stream != graph.stream &&
        std::find(others.begin(), others.end(), operation.stream) == others.end())
      graph.other_streams.push_back(operation.stream);
    if (operation.kind == program::WorkKind::kCopy || operation.kind == program::WorkKind::kMemset)
      ++graph.copies;
  }
  return graph;
}

}  // namespace

Result<std::unique_ptr<GraphSet>> GraphSet::make(DeviceContext& context, const JobPlan& plan,
                                                 const DeviceMemory& memory,
                                                 const StreamSet& streams,
                                                 const OperationLauncher& launcher,
                                                 CounterSet& counters) {
  std::unique_ptr<GraphSet> set(new GraphSet);
  const Driver& driver = context.driver();
  for (const program::ThreadProgram& thread : plan.program.threads) {
    for (const program::Step& step : thread.steps) {
      const std::pair key(step.target, step.count);
      if (!launches(step) || step.count < 2 || set->graphs_.contains(key)) continue;
      Graph& graph = set->graphs_[key] = graph_of(plan, step.target, step.count);
      graph.scale = memory.scales() + 4 * (set->graphs_.size() - 1);
      BUBBLESIM_CUDA(driver, set_words, graph.scale, std::bit_cast<std::uint32_t>(1.0F), 1,
                     streams.at(graph.stream));
      Capture capture(driver, plan, streams, launcher, counters);
      auto captured = capture.run(graph);
      if (!captured)
        return fail(plan.name, plan.program.names[plan.program.ops[step.target].name],
                    captured.error().text());
      GraphExecHandle exec = nullptr;
      BUBBLESIM_CUDA(driver, graph_instantiate, &exec, captured->get(), 0);
      graph.exec = OwnGraphExec(exec, {&driver});
    }
  }
  return set;
}

Graph* GraphSet::find(std::uint32_t first, std::uint32_t count) {
  const auto found = graphs_.find({first, count});
  return found == graphs_.end() ? nullptr : &found->second;
}

const Graph* GraphSet::holding(std::uint32_t op) const {
  auto after = graphs_.upper_bound({op, 0xFFFFFFFFU});
  if (after == graphs_.begin()) return nullptr;
  const Graph& graph = std::prev(after)->second;
  return op < graph.first + graph.count ? &graph : nullptr;
}

}  // namespace bubblesim::capture::cuda

// A pass as it repeats, written as a recording.
#include <algorithm>

#include "traces/iterations/job_pass.hpp"

namespace bubblesim::traces {
namespace {

class Repetition {
 public:
  Repetition(const RankTrace& rank, const RankPass& pass) : rank_(rank), pass_(pass) {
    out_.rank = rank.rank;
    out_.world_size = rank.world_size;
    out_.device = rank.device;
    out_.names = rank.names;
    out_.shapes = rank.shapes;
    out_.threads = rank.threads;
    out_.streams = rank.streams;
    out_.collectives = rank.collectives;
    out_.provenance = rank.provenance;
  }

  RepeatedTrace run() {
    const Interval device = device_span();
    if (device.end < device.begin) return {std::move(out_), {}};  // nothing to repeat
    const auto passes = (device.length().count() + pass_.length.count() - 1) /
                        std::max<std::int64_t>(1, pass_.length.count());
    // Where device work outlasts a pass, the window ends beside passes after it.
    for (std::int64_t copy = passes; copy > -std::max<std::int64_t>(1, passes); --copy) {
      add(copy * pass_.length);
    }
    sort();
    return {std::move(out_), {device.end - pass_.length, device.end}};
  }

 private:
  [[nodiscard]] Interval device_span() const {
    Interval span{TraceTime::max(), TraceTime::min()};
    for (std::size_t i = 0; i < rank_.device_ops.size(); ++i) {
      if (!pass_.holds_op(i)) continue;
      span.begin = std::min(span.begin, pass_.ran_without_waits(i, rank_.device_ops[i].start));
      span.end = std::max(span.end, pass_.ran_without_waits(i, rank_.device_ops[i].end()));
    }
    return span;
  }

  // The pass, so much earlier.
  void add(Duration earlier) {
    std::vector<std::uint32_t> places(rank_.host_calls.size(), kNone);
    for (std::size_t i = 0; i < rank_.host_calls.size(); ++i) {
      HostCall call = rank_.host_calls[i];
      if (!pass_.holds_call(call.start)) continue;
      move(call, pass_.without_waits(call.start) - earlier,
           pass_.without_waits(call.end()) - earlier);
      places[i] = static_cast<std::uint32_t>(out_.host_calls.size());
      out_.host_calls.push_back(call);
    }
    for (std::size_t i = 0; i < rank_.device_ops.size(); ++i) {
      if (!pass_.holds_op(i)) continue;
      DeviceOp op = rank_.device_ops[i];
      move(op, pass_.ran_without_waits(i, op.start) - earlier,
           pass_.ran_without_waits(i, op.end()) - earlier);
      if (op.launch != kNone) op.launch = places[op.launch];
      out_.device_ops.push_back(op);
    }
  }

  template <class Record>
  static void move(Record& record, TraceTime start, TraceTime end) {
    record.start = start;
    record.duration = end - start;
  }

  // Both by start; launches follow their calls.
  void sort() {
    std::vector<std::uint32_t> order(out_.host_calls.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return out_.host_calls[a].start < out_.host_calls[b].start;
    });
    std::vector<std::uint32_t> place(order.size());
    std::vector<HostCall> calls;
    calls.reserve(order.size());
    for (const std::uint32_t index : order) {
      place[index] = static_cast<std::uint32_t>(calls.size());
      calls.push_back(out_.host_calls[index]);
    }
    out_.host_calls = std::move(calls);
    for (DeviceOp& op : out_.device_ops) {
      if (op.launch != kNone) op.launch = place[op.launch];
    }
    std::stable_sort(out_.device_ops.begin(), out_.device_ops.end(),
                     [](const DeviceOp& a, const DeviceOp& b) { return a.start < b.start; });
  }

  const RankTrace& rank_;
  const RankPass& pass_;
  RankTrace out_;
};

}  // namespace

RepeatedTrace repeated_trace(const RankTrace& rank, const RankPass& pass) {
  return Repetition(rank, pass).run();
}

}  // namespace bubblesim::traces

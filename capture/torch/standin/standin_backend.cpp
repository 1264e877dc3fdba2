// Process group backend "standin": every collective is announced by an NVTX range, marked by a
// kernel that does nothing, ordered by events as ProcessGroupNCCL orders it, and its outputs are
// filled from this rank's own data. capture/torch/README.md has text, names and rules.
//
// Built by torch.utils.cpp_extension (cpp_backend.py) against PyTorch 2; C++17. No CUDA header:
// streams and events are c10's, the marker kernels and cuLaunchKernel come as addresses.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/extension.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define BUBBLESIM_STANDIN_NVTX 1
#else
#include <torch/csrc/profiler/stubs/base.h>
#define BUBBLESIM_STANDIN_NVTX 0
#endif

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using LaunchKernel = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void*, void**, void**);

enum class Fill : std::uint8_t { kNone, kShard, kAll };

/// Outputs up to this size are filled for all ranks: sizes, indices, pickled objects.
constexpr std::int64_t kSmallBytes = 1 << 20;

/// The objects that the Python side passes once a process.
struct Setup {
  LaunchKernel launch = nullptr;
  std::map<std::string, void*> markers;  ///< CUfunction by operation
  PyObject* resolve = nullptr;           ///< (stream id, device index, device type) -> cudaStream_t
  Fill fill = Fill::kShard;
  bool keep_log = false;
};

Setup& setup() {
  static Setup instance;
  return instance;
}

std::mutex& log_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<std::string>& log_lines() {
  static std::vector<std::string> lines;
  return lines;
}

/// An NVTX range on the calling thread while it lives.
class Range {
 public:
  explicit Range(const std::string& text) {
#if BUBBLESIM_STANDIN_NVTX
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain(), &attributes);
#else
    const auto* stubs = torch::profiler::impl::cudaStubs();
    if (stubs->enabled()) stubs->rangePush(text.c_str());
#endif
  }
  ~Range() {
#if BUBBLESIM_STANDIN_NVTX
    nvtxDomainRangePop(domain());
#else
    const auto* stubs = torch::profiler::impl::cudaStubs();
    if (stubs->enabled()) stubs->rangePop();
#endif
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
#if BUBBLESIM_STANDIN_NVTX
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("bubblesim");
    return handle;
  }
#endif
};

/// The CUDA stream of a PyTorch stream. Requested from Python once for each stream, as not all
/// versions have a C++ call. Pool streams live as long as the process.
void* raw_stream(const c10::Stream& stream) {
  static std::mutex mutex;
  static std::map<c10::StreamId, void*> known;
  const c10::StreamId id = stream.id();
  if (id == 0) return nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto place = known.find(id);
    if (place != known.end()) return place->second;
  }
  std::uintptr_t handle = 0;
  {
    const py::gil_scoped_acquire gil;
    const auto resolve = py::reinterpret_borrow<py::function>(setup().resolve);
    handle = resolve(static_cast<std::int64_t>(id), static_cast<int>(stream.device_index()),
                     static_cast<int>(stream.device_type()))
                 .cast<std::uintptr_t>();
  }
  const std::lock_guard<std::mutex> lock(mutex);
  return known[id] = reinterpret_cast<void*>(handle);
}

void launch_marker(const std::string& op, const c10::Stream& stream) {
  const auto marker = setup().markers.find(op);
  TORCH_CHECK(setup().launch != nullptr && marker != setup().markers.end(),
              "standin: no marker kernel for ", op);
  const int code = setup().launch(marker->second, 1, 1, 1, 32, 1, 1, 0, raw_stream(stream),
                                  nullptr, nullptr);
  TORCH_CHECK(code == 0, "standin: cuLaunchKernel of the marker of ", op, " gave CUDA error ",
              code);
}

std::int64_t bytes_of(const Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  }
  return bytes;
}

Tensors flat(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// PyTorch's Python name of a type; toString gives the C name.
std::string dtype_word(const Tensors& tensors) {
  if (tensors.empty()) return "uint8";
  switch (tensors.front().scalar_type()) {
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kHalf: return "float16";
    case at::kInt: return "int32";
    case at::kLong: return "int64";
    case at::kShort: return "int16";
    case at::kChar: return "int8";
    case at::kByte: return "uint8";
    default: return lowered(c10::toString(tensors.front().scalar_type()));
  }
}

/// note.py's group_word.
std::string group_word(const std::string& description, const std::string& name) {
  std::string text = description.empty() || description == "undefined" ? name : description;
  if (text == description && text.rfind("mesh_", 0) == 0) text.erase(0, 5);
  for (char& c : text) {
    if (c <= ' ' || c > '~' || c == '=') c = '_';
  }
  text.resize(std::min<std::size_t>(text.size(), 64));
  return text.empty() ? "_" : text;
}

/// Options have asyncOp from PyTorch 2.8 for all operations; without it they are asynchronous.
template <class Options, class = void>
struct HasAsync : std::false_type {};
template <class Options>
struct HasAsync<Options, std::void_t<decltype(std::declval<Options>().asyncOp)>>
    : std::true_type {};

template <class Options>
bool is_async(const Options& options) {
  if constexpr (HasAsync<Options>::value) return options.asyncOp;
  return true;
}

/// A collective under way: its end is an event, or nothing (CPU, or on the caller's stream).
class StandinWork : public c10d::Work {
 public:
  StandinWork(int rank, c10d::OpType type, Tensors outputs, Tensors held)
      : Work(rank, type), outputs_(std::move(outputs)), held_(std::move(held)) {}

  bool isCompleted() override { return !end_ || end_->query(); }
  bool isSuccess() const override { return true; }
  Tensors result() override { return outputs_; }
  bool wait(std::chrono::milliseconds /*timeout*/ = kNoTimeout) override {
    synchronize();
    return true;
  }
  void synchronize() override {
    if (end_) {
      const c10::impl::VirtualGuardImpl guard(end_->device().type());
      end_->block(guard.getStream(end_->device()));
    }
    held_.clear();
  }
  void blockCurrentStream() { synchronize(); }  // virtual from PyTorch 2.9 on
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  /// To be called with the collective's stream current.
  void finish_on(const c10::Stream& stream, bool own_stream) {
    if (own_stream) {
      end_ = std::make_unique<c10::Event>(stream.device_type());
      end_->record(stream);
    }
    complete({stream.device()});
  }
  void finish_on_host() { complete({}); }

 private:
  void complete(std::vector<c10::Device> devices) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), std::move(devices));
    future_->markCompleted(c10::IValue(outputs_));
  }

  Tensors outputs_;
  Tensors held_;  ///< kept from the allocator until a wait
  std::unique_ptr<c10::Event> end_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// One collective that is replaced.
struct Call {
  std::string op;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  Tensors inputs;
  Tensors outputs;
  bool async = true;
  int peer = -1;  ///< rank in the group, of send and recv
};

class StandinBackend : public c10d::Backend {
 public:
  StandinBackend(int rank, int size, std::string name, std::vector<std::int64_t> ranks,
                 std::string ranks_text)
      : Backend(rank, size), name_(std::move(name)), ranks_(std::move(ranks)),
        ranks_text_(std::move(ranks_text)) {}

  const std::string getBackendName() const override { return "standin"; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void startCoalescing() override {}
  WorkPtr endCoalescing() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return in_place("all_reduce", c10d::OpType::ALLREDUCE, tensors, is_async(options));
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return in_place("all_reduce", c10d::OpType::ALLREDUCE_COALESCED, tensors, is_async(options));
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return in_place("broadcast", c10d::OpType::BROADCAST, tensors, is_async(options));
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return in_place("reduce", c10d::OpType::REDUCE, tensors, is_async(options));
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return stand_in({"barrier", c10d::OpType::BARRIER, {}, {}, is_async(options)}, [](Fill) {});
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return stand_in({"all_gather", c10d::OpType::ALLGATHER, inputs, flat(outputs),
                     is_async(options)},
                    [this, &outputs, &inputs](Fill fill) {
                      for (std::size_t i = 0; i < inputs.size(); ++i) {
                        gather_into(outputs[i], inputs[i], fill);
                      }
                    });
  }
  /// outputs[rank][tensor], unlike allgather's outputs[tensor][rank].
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return stand_in({"all_gather", c10d::OpType::ALLGATHER_COALESCED, inputs, flat(outputs),
                     is_async(options)},
                    [this, &outputs, &inputs](Fill fill) {
                      for (std::size_t r = 0; r < outputs.size(); ++r) {
                        if (fill != Fill::kAll && r != static_cast<std::size_t>(rank_)) continue;
                        for (std::size_t i = 0; i < inputs.size(); ++i) {
                          copy(outputs[r][i], inputs[i]);
                        }
                      }
                    });
  }
  WorkPtr _allgather_base(Tensor& output, Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    Tensors outputs{output}, inputs{input};
    return gather_tensors(c10d::OpType::_ALLGATHER_BASE, outputs, inputs, is_async(options));
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return gather_tensors(c10d::OpType::COALESCED, outputs, inputs, is_async(options));
  }

  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return stand_in({"reduce_scatter", c10d::OpType::REDUCE_SCATTER, flat(inputs), outputs,
                     is_async(options)},
                    [this, &outputs, &inputs](Fill) {
                      for (std::size_t i = 0; i < outputs.size(); ++i) {
                        copy(outputs[i], inputs[i][static_cast<std::size_t>(rank_)]);
                      }
                    });
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    Tensors outputs{output}, inputs{input};
    return scatter_tensors(c10d::OpType::_REDUCE_SCATTER_BASE, outputs, inputs, is_async(options));
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return scatter_tensors(c10d::OpType::COALESCED, outputs, inputs, is_async(options));
  }

  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    const bool even = output_splits.empty() && input_splits.empty();
    return stand_in({"all_to_all", c10d::OpType::ALLTOALL_BASE, {input}, {output},
                     is_async(options)},
                    [this, &output, &input, even](Fill fill) {
                      if (output.numel() == 0) return;
                      if (even && fill == Fill::kShard) {
                        const auto own = static_cast<std::size_t>(rank_);
                        copy(output.chunk(size_)[own], input.chunk(size_)[own]);
                      } else if (output.numel() == input.numel()) {
                        copy(output, input.view_as(output));
                      } else {
                        output.zero_();
                      }
                    });
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    return stand_in({"all_to_all", c10d::OpType::ALLTOALL, inputs, outputs, is_async(options)},
                    [this, &outputs, &inputs](Fill fill) {
                      for (std::size_t i = 0; i < outputs.size(); ++i) {
                        const bool own = i == static_cast<std::size_t>(rank_);
                        if (fill != Fill::kAll && !own) continue;
                        if (outputs[i].sizes() == inputs[i].sizes()) copy(outputs[i], inputs[i]);
                        else outputs[i].zero_();
                      }
                    });
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    return stand_in({"gather", c10d::OpType::GATHER, inputs, flat(outputs), is_async(options)},
                    [this, &outputs, &inputs](Fill fill) {
                      if (!outputs.empty()) gather_into(outputs[0], inputs[0], fill);
                    });
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    return stand_in({"scatter", c10d::OpType::SCATTER, outputs, outputs, is_async(options)},
                    [this, &outputs, &inputs](Fill) {
                      if (inputs.empty()) outputs[0].zero_();
                      else copy(outputs[0], inputs[0][static_cast<std::size_t>(rank_)]);
                    });
  }

  WorkPtr send(Tensors& tensors, int peer, int /*tag*/) override {
    return stand_in({"send", c10d::OpType::SEND, tensors, {}, true, peer}, [](Fill) {});
  }
  WorkPtr recv(Tensors& tensors, int peer, int /*tag*/) override {
    return stand_in({"recv", c10d::OpType::RECV, tensors, tensors, true, peer},
                    [&tensors](Fill) {
                      for (Tensor& tensor : tensors) tensor.zero_();
                    });
  }

 private:
  /// A stream of the group's own, and the event by which it waits for callers.
  struct Lane {
    c10::Stream stream;
    std::unique_ptr<c10::Event> ready;
  };

  WorkPtr in_place(const char* op, c10d::OpType type, Tensors& tensors, bool async) {
    return stand_in({op, type, tensors, tensors, async}, nullptr);
  }

  WorkPtr gather_tensors(c10d::OpType type, Tensors& outputs, Tensors& inputs, bool async) {
    return stand_in({"all_gather", type, inputs, outputs, async},
                    [this, &outputs, &inputs](Fill fill) {
                      for (std::size_t i = 0; i < outputs.size(); ++i) {
                        auto chunks = outputs[i].chunk(size_);
                        gather_into(chunks, inputs[i], fill);
                      }
                    });
  }

  WorkPtr scatter_tensors(c10d::OpType type, Tensors& outputs, Tensors& inputs, bool async) {
    return stand_in({"reduce_scatter", type, inputs, outputs, async},
                    [this, &outputs, &inputs](Fill) {
                      for (std::size_t i = 0; i < outputs.size(); ++i) {
                        copy(outputs[i], inputs[i].chunk(size_)[static_cast<std::size_t>(rank_)]);
                      }
                    });
  }

  void gather_into(Tensors& outputs, const Tensor& input, Fill fill) const {
    for (std::size_t r = 0; r < outputs.size(); ++r) {
      if (fill == Fill::kAll || r == static_cast<std::size_t>(rank_)) copy(outputs[r], input);
    }
  }

  /// No copy if a buffer is gathered into or scattered from in place.
  static void copy(Tensor to, const Tensor& from) {
    if (to.data_ptr() != from.data_ptr() && to.numel() == from.numel()) {
      to.copy_(from.view_as(to), true);
    }
  }

  std::string announcement(const Call& call) {
    const std::string group = group_word(getGroupDesc(), name_);
    std::string text = "bubblesim.collective op=" + call.op +
                       " bytes=" + std::to_string(bytes_of(call.inputs)) +
                       " dtype=" + dtype_word(call.inputs);
    const auto own = static_cast<std::size_t>(rank_);
    if (call.peer >= 0) {
      const bool sends = call.op == "send";
      const std::int64_t me = ranks_[own];
      const std::int64_t other = ranks_[static_cast<std::size_t>(call.peer)];
      const std::string pair = std::to_string(sends ? me : other) + ">" +
                               std::to_string(sends ? other : me);
      text += " group=" + group + "." + pair + " size=2 rank=" + (sends ? "0" : "1") +
              " seq=" + std::to_string(pair_sequences_[pair]++) + " async=1 ranks=" +
              std::to_string(sends ? me : other) + "," + std::to_string(sends ? other : me);
      return text;
    }
    text += " group=" + group + " size=" + std::to_string(size_) + " rank=" +
            std::to_string(rank_) + " seq=" + std::to_string(sequence_++) +
            " async=" + (call.async ? "1" : "0");
    return ranks_text_.empty() ? text : text + " ranks=" + ranks_text_;
  }

  Lane& lane(c10::Device device, int peer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto place = lanes_.find({device.index(), peer});
    if (place == lanes_.end()) {
      const c10::impl::VirtualGuardImpl guard(device.type());
      place = lanes_
                  .emplace(std::make_pair(device.index(), peer),
                           Lane{guard.getStreamFromGlobalPool(device),
                                std::make_unique<c10::Event>(device.type())})
                  .first;
    }
    return place->second;
  }

  /// The device of a collective without tensors (a barrier).
  c10::Device device_of(const Call& call) {
    if (!call.outputs.empty()) return device_ = call.outputs.front().device();
    if (!call.inputs.empty()) return device_ = call.inputs.front().device();
    return device_;
  }

  template <class Filler>
  void run_filler(const Call& call, const Filler& filler) {
    if constexpr (!std::is_same_v<Filler, std::nullptr_t>) {
      const std::int64_t bytes = bytes_of(call.outputs);
      if (bytes == 0 || setup().fill == Fill::kNone) return;
      const at::AutoDispatchBelowAutograd below_autograd;
      const Range range("bubblesim.fill op=" + call.op + " bytes=" + std::to_string(bytes));
      filler(bytes <= kSmallBytes ? Fill::kAll : setup().fill);
    }
  }

  std::string announce(const Call& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text = announcement(call);
    if (setup().keep_log) {
      const std::lock_guard<std::mutex> log_lock(log_mutex());
      log_lines().push_back(text);
    }
    return text;
  }

  template <class Filler>
  WorkPtr stand_in(const Call& call, const Filler& filler) {
    Tensors held = call.inputs;
    held.insert(held.end(), call.outputs.begin(), call.outputs.end());
    auto work = c10::make_intrusive<StandinWork>(rank_, call.type, call.outputs, std::move(held));
    const c10::Device device = device_of(call);
    const std::string text = announce(call);
    if (device.is_cpu()) {
      { const Range range(text); }
      run_filler(call, filler);
      work->finish_on_host();
    } else {
      on_device(call, device, text, *work, filler);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ = work;
    return work;
  }

  /// The order of calls is ProcessGroupNCCL's: event, wait, kernel, event.
  template <class Filler>
  void on_device(const Call& call, c10::Device device, const std::string& text, StandinWork& work,
                 const Filler& filler) {
    const c10::DeviceGuard device_guard(device);
    const c10::impl::VirtualGuardImpl guard(device.type());
    const c10::Stream callers = guard.getStream(device);
    c10::Stream stream = callers;
    {
      const Range range(text);
      if (call.async) {
        Lane& own = lane(device, call.peer);
        own.ready->record(callers);
        own.ready->block(own.stream);
        stream = own.stream;
      }
      launch_marker(call.op, stream);
    }
    const c10::StreamGuard stream_guard(stream);
    run_filler(call, filler);
    work.finish_on(stream, call.async);
  }

  const std::string name_;
  const std::vector<std::int64_t> ranks_;  ///< global, by rank in the group
  const std::string ranks_text_;
  std::mutex mutex_;  ///< for the members below
  std::uint64_t sequence_ = 0;
  std::map<std::string, std::uint64_t> pair_sequences_;
  std::map<std::pair<c10::DeviceIndex, int>, Lane> lanes_;
  c10::Device device_{c10::kCPU};
  WorkPtr last_;
};

Fill fill_of(const std::string& word) {
  if (word == "none") return Fill::kNone;
  if (word == "all") return Fill::kAll;
  TORCH_CHECK(word == "shard", "standin: fill is \"", word, "\"; allowed: shard, all, none");
  return Fill::kShard;
}

void configure(std::uintptr_t launch, const std::map<std::string, std::uintptr_t>& markers,
               const py::function& resolve, const std::string& fill, bool keep_log) {
  setup().launch = reinterpret_cast<LaunchKernel>(launch);
  setup().markers.clear();
  for (const auto& [op, function] : markers) {
    setup().markers[op] = reinterpret_cast<void*>(function);
  }
  setup().resolve = resolve.inc_ref().ptr();  // kept until the process ends
  setup().fill = fill_of(fill);
  setup().keep_log = keep_log;
}

c10::intrusive_ptr<c10d::Backend> create(int rank, int size, const std::string& name,
                                         const std::vector<std::int64_t>& ranks,
                                         const std::string& ranks_text) {
  return c10::make_intrusive<StandinBackend>(rank, size, name, ranks, ranks_text);
}

std::vector<std::string> take_log() {
  const std::lock_guard<std::mutex> lock(log_mutex());
  return std::exchange(log_lines(), {});
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("configure", &configure);
  module.def("create", &create);
  module.def("take_log", &take_log);
  module.attr("has_nvtx_domain") = BUBBLESIM_STANDIN_NVTX == 1;
}

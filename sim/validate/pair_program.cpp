#include "sim/validate/pair_program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/model/training_work.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::size_t kMostKernels = std::size_t{1} << 22U;

class ProgramBuilder {
 public:
  ProgramBuilder(const PairWorkload& workload, const PairMachine& machine, std::uint32_t batch)
      : workload_(workload), machine_(machine), batch_(batch > 0 ? batch : workload.batch),
        timer_(machine.gpu, machine.efficiency, synth::KernelSlowdown{}), writer_(0, machine.gpu) {}

  CheckedResult<program::Program> build() {
    writer_.begin_iteration();
    BUBBLESIM_RETURN_IF_ERROR(write(workload_.steps));
    return writer_.finish();
  }

 private:
  using Drafts = std::vector<synth::OpDraft>;
  using Status = CheckedResult<void>;

  tl::unexpected<Errors> fault(std::string message) const {
    return tl::make_unexpected(Errors{{workload_.id, {}, std::move(message)}});
  }

  Status write(const std::vector<WorkloadStep>& steps) {
    for (const WorkloadStep& step : steps) {
      BUBBLESIM_RETURN_IF_ERROR(
          std::visit([this](const auto& kind) { return write_step(kind); }, step));
      if (kernels_ > kMostKernels) return fault("more than 4 million kernels");
    }
    return {};
  }

  Status write_step(const HostStep& step) {
    writer_.pause(step.span + step.each_sample * batch_);
    return {};
  }

  Status write_step(const CopyStep& step) {
    synth::OpDraft draft;
    draft.kind = program::WorkKind::kCopy;
    draft.name = writer_.name("copy");
    draft.duration = synth::copy_time(step.bytes + step.each_sample * batch_);
    launch(draft);
    return {};
  }

  Status write_step(const SyncStep&) {
    writer_.wait_for_device();
    return {};
  }

  Status write_step(const RepeatStep& step) {
    for (std::uint32_t i = 0; i < step.times; ++i) BUBBLESIM_RETURN_IF_ERROR(write(step.steps));
    return {};
  }

  Status write_step(const KernelStep& step) {
    auto [at, fresh] = drafts_.try_emplace(&step);
    if (fresh) {
      if (step.each_sample && batch_ == 0) {
        return fault("its batch is the table's, and the table has none");
      }
      for (const KernelLine& line : step.kernels) {
        const model::KernelWork work = step.each_sample ? of_batch(line.work) : line.work;
        const bool known = line.given && line.given->time;
        const synth::OpDraft draft = known ? given(line) : timed(work, line.given);
        at->second.insert(at->second.end(), line.count, draft);
      }
    }
    launch(at->second);
    return {};
  }

  Status write_step(const ModelStep& step) {
    auto [at, fresh] = drafts_.try_emplace(&step);
    if (fresh) {
      ModelStep sized = step;
      if (sized.batch == 0) sized.batch = batch_;
      if (sized.batch == 0) return fault("its batch is the table's, and the table has none");
      BUBBLESIM_ASSIGN_OR_RETURN(at->second, drafts_of(sized));
    }
    launch(at->second);
    return {};
  }

  CheckedResult<Drafts> drafts_of(const ModelStep& step) {
    BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                               model::find_model(step.model, machine_.models));
    auto work = work_of(step, spec);
    if (!work) return fault(work.error().message);
    std::vector<std::pair<Drafts, Drafts>> kinds;
    for (const model::LayerWork& layer : work->kinds) {
      std::pair<Drafts, Drafts> drafts;
      add(layer.forward, step, drafts.first);
      if (step.pass == ModelPass::kTraining) {
        add(layer.recompute, step, drafts.second);
        add(model::backward_items(layer, model::BackwardExchanges::kSerial), step, drafts.second);
      }
      kinds.push_back(std::move(drafts));
    }
    Drafts out;
    for (const std::uint32_t layer : work->layers) {
      out.insert(out.end(), kinds[layer].first.begin(), kinds[layer].first.end());
    }
    for (auto layer = work->layers.rbegin(); layer != work->layers.rend(); ++layer) {
      out.insert(out.end(), kinds[*layer].second.begin(), kinds[*layer].second.end());
    }
    return out;
  }

  Result<model::ModelWork> work_of(const ModelStep& step, const model::ModelSpec& spec) const {
    if (step.pass == ModelPass::kDecode) {
      return model::decode_work(spec, {}, step.precision, step.batch, step.sequence);
    }
    if (step.pass == ModelPass::kForward) {
      return model::forward_work(spec, {}, step.precision, step.batch, step.sequence,
                                 model::AttentionKernels::kUnfused);
    }
    model::TrainingShape shape;
    shape.micro_batch = step.batch;
    shape.sequence = step.sequence;
    shape.precision = step.precision;
    shape.recompute = step.recompute;
    return model::training_work(spec, {}, shape);
  }

  void add(const std::vector<model::WorkItem>& items, const ModelStep& step, Drafts& out) {
    for (const model::WorkItem& item : items) {
      const auto* kernel = std::get_if<model::KernelWork>(&item);
      if (kernel == nullptr) continue;
      if (kernel->kind == model::KernelKind::kConvolution &&
          step.convolutions == Convolutions::kEachSample) {
        add_each_sample(*kernel, step.batch, out);
      } else {
        out.push_back(timed(*kernel));
      }
    }
  }

  // A product for each sample. A window of more than one pixel is unfolded first: the matrix of
  // k values for each of m pixels is written, and read by the product.
  void add_each_sample(const model::KernelWork& batch, std::uint32_t samples, Drafts& out) {
    model::KernelWork product = batch;
    product.kind = model::KernelKind::kGemm;
    product.flops /= samples;
    product.bytes /= samples;
    std::uint64_t& divided = batch.gemm.k % samples == 0 && batch.gemm.k > batch.gemm.m
                                 ? product.gemm.k
                                 : product.gemm.m;
    divided = std::max<std::uint64_t>(1, divided / samples);
    const synth::OpDraft draft = timed(product);
    const bool window = batch.name.find("1x1") == std::string::npos;
    if (!window) {
      out.insert(out.end(), samples, draft);
      return;
    }
    const auto elements =
        static_cast<double>(product.gemm.m) * static_cast<double>(product.gemm.k);
    const model::KernelWork unfold =
        model::stream_kernel("unfold", model::KernelKind::kElementwise, elements,
                             2 * model::bytes_of(batch.precision), batch.precision);
    const synth::OpDraft before = timed(unfold);
    for (std::uint32_t i = 0; i < samples; ++i) {
      out.push_back(before);
      out.push_back(draft);
    }
  }

  [[nodiscard]] model::KernelWork of_batch(model::KernelWork work) const {
    work.bytes *= batch_;
    work.flops *= batch_;
    work.elements *= batch_;
    work.gemm.m *= batch_;
    return work;
  }

  synth::OpDraft timed(const model::KernelWork& work,
                       const std::optional<KernelLine::Given>& given = {}) {
    synth::TimedKernel kernel = timer_.time(work);
    if (given) {
      kernel.launch = given->launch;
      kernel.profile.blocks = given->launch.grid[0];
      kernel.profile.residency =
          program::residency_of(synth::needs_of(given->launch), machine_.gpu.sm);
    }
    kernel.duration = scale(kernel.duration, workload_.kernel_factor);
    return writer_.prepare(kernel);
  }

  synth::OpDraft given(const KernelLine& line) {
    synth::OpDraft draft{.name = writer_.name(line.work.name), .duration = *line.given->time};
    program::KernelProfile profile = program::profile_kernel(
        synth::needs_of(line.given->launch),
        line.given->memory_bound ? program::KernelClass::kMemory : program::KernelClass::kCompute,
        machine_.gpu);
    profile.dram_share = program::dram_share(line.work.bytes, draft.duration, machine_.gpu);
    draft.profile = writer_.add_profile(profile, line.given->launch);
    return draft;
  }

  void launch(const synth::OpDraft& draft) {
    ++kernels_;
    writer_.launch(draft, {}, {workload_.launch_gap, workload_.launch_call});
  }
  void launch(const Drafts& drafts) {
    for (const synth::OpDraft& draft : drafts) launch(draft);
  }

  const PairWorkload& workload_;
  const PairMachine& machine_;
  std::uint32_t batch_;
  synth::KernelTimer timer_;
  synth::ProgramWriter writer_;
  std::map<const void*, Drafts> drafts_;  ///< of steps that repeat
  std::size_t kernels_ = 0;
};

}  // namespace

CheckedResult<program::Program> pair_program(const PairWorkload& workload,
                                              const PairMachine& machine,
                                              std::uint32_t batch) {
  return ProgramBuilder(workload, machine, batch).build();
}

program::Program stretched(program::Program program, double factor) {
  for (program::Op& op : program.ops) op.duration = scale(op.duration, factor);
  for (program::ThreadProgram& thread : program.threads) {
    for (program::Step& step : thread.steps) {
      step.think = program::short_span(scale(step.think.duration(), factor));
      step.cost = program::short_span(scale(step.cost.duration(), factor));
    }
  }
  return program;
}

namespace {

using hardware::GpuSpec;

Duration span_of(double ns) { return Duration{std::llround(ns)}; }

struct Constant {
  std::string_view key;
  void (*put)(GpuSpec& gpu, double value);
};

constexpr std::array<Constant, 10> kConstants{{
    {"time_slice", [](GpuSpec& gpu, double ns) { gpu.time_slice = span_of(ns); }},
    {"context_switch", [](GpuSpec& gpu, double ns) { gpu.context_switch = span_of(ns); }},
    {"client_switch", [](GpuSpec& gpu, double ns) { gpu.client_switch = span_of(ns); }},
    {"even_clients",
     [](GpuSpec& gpu, double even) {
       gpu.client_order = even > 0 ? hardware::ClientOrder::kEven : hardware::ClientOrder::kArrival;
     }},
    {"dram_reach", [](GpuSpec& gpu, double share) { gpu.dram_reach = share; }},
    {"part/dram_saturating_sms",
     [](GpuSpec& gpu, double share) { gpu.part.dram_saturating_sms = share; }},
    {"part/dark_clock_gain", [](GpuSpec& gpu, double gain) { gpu.part.dark_clock_gain = gain; }},
    {"contention/l2_slowdown",
     [](GpuSpec& gpu, double slowdown) { gpu.contention.l2_slowdown = slowdown; }},
    {"contention/issue_shares",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_issue_share = gpu.contention.memory_kernel_issue_share =
           gpu.contention.unknown_kernel_issue_share = share;
     }},
    {"contention/memory_boundness",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_memory_boundness =
           gpu.contention.memory_kernel_memory_boundness =
               gpu.contention.unknown_kernel_memory_boundness = share;
     }},
}};

// NVIDIA MIG user guide: 1, 2, 3, 4, 7 of 7 compute slices; 1, 2, 4 of 4 (A30).
bool has_instance(std::uint32_t all_slices, std::uint32_t slices) {
  if (slices == 0 || slices > all_slices) return false;
  return slices <= 2 || slices == all_slices || (all_slices == 7 && slices <= 4);
}

std::string instances_text(std::uint32_t all_slices) {
  std::string out;
  for (std::uint32_t slices = 1; slices <= all_slices; ++slices) {
    if (!has_instance(all_slices, slices)) continue;
    out += (out.empty() ? "it has those of " : ", ") + std::to_string(slices);
  }
  return out.empty() ? "it has none" : out;
}

}  // namespace

CheckedResult<PairMachine> find_pair_machine(const std::string& device,
                                             const std::string& configs) {
  PairMachine out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.gpu, hardware::find_gpu_spec(device, configs + "/devices"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.efficiency,
                             model::device_efficiency(out.gpu, configs));
  out.models = configs + "/models";
  return out;
}

// Memory slices of a profile by NVIDIA's table for GPUs of 7 compute and 8 memory slices.
Result<PairMachine> mig_instance(const PairMachine& whole, std::uint32_t slices) {
  const hardware::GpuSpec& gpu = whole.gpu;
  const MigGeometry& mig = gpu.mig;
  if (!has_instance(mig.compute_slices, slices)) {
    return fail(gpu.name + " has no MIG instance of " + std::to_string(slices) +
                " compute slices; " + instances_text(mig.compute_slices));
  }
  const std::uint32_t memory = slices == mig.compute_slices ? mig.memory_slices
                               : slices == 3                ? std::min(4U, mig.memory_slices)
                                                            : slices;
  const double of_memory = static_cast<double>(memory) / mig.memory_slices;
  PairMachine out = whole;
  out.gpu.sm_count = mig.sms_of(slices);
  out.gpu.dram_bandwidth.value *= of_memory;
  out.gpu.memory.value = gpu.memory.value / mig.memory_slices * memory;
  if (slices < mig.compute_slices) out.gpu.mig = {};  // an instance is not cut again
  for (double& peak : out.efficiency.peak_flops) {
    peak *= static_cast<double>(out.gpu.sm_count) / gpu.sm_count;
  }
  out.efficiency.l2_resident_bytes *= of_memory;
  return out;
}

Result<void> put_constant(GpuSpec& gpu, const std::string& key, double value) {
  const auto constant = std::ranges::find(kConstants, key, &Constant::key);
  if (constant == kConstants.end()) {
    std::vector<std::string_view> known;
    for (const Constant& each : kConstants) known.push_back(each.key);
    return fail("changes", {}, unknown_name_message("constant", key, std::span(known)));
  }
  constant->put(gpu, value);
  return {};
}

}  // namespace bubblesim::validate

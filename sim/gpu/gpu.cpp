#include "sim/gpu/gpu.hpp"

#include "sim/gpu/gpu_model.hpp"

namespace bubblesim::gpu {

Gpu::Gpu(engine::Engine& engine, const hardware::GpuSpec& spec, const SharingSetup& sharing)
    : model_(std::make_unique<Model>(engine, *this, spec, sharing)) {}

Gpu::~Gpu() = default;

ClientId Gpu::add_client(const ClientSetup& setup, WorkListener& listener) {
  return model_->add_client(setup, listener);
}

WorkId Gpu::submit(const Work& work) { return model_->submit(work); }

void Gpu::expect_submission() { model_->expect_submission(); }

void Gpu::finish_collective(WorkId work, SimTime end) { model_->finish_collective(work, end); }

void Gpu::set_sm_cap(ClientId client, std::uint32_t sm_cap) { model_->set_sm_cap(client, sm_cap); }

void Gpu::set_priority(ClientId client, std::int32_t priority) {
  model_->set_priority(client, priority);
}

void Gpu::set_slice(ClientId client, Duration slice) { model_->set_slice(client, slice); }

void Gpu::preempt(ClientId client, program::Preemption how) { model_->drive_off(client, how); }

void Gpu::proceed(ClientId client) { model_->drive_off(client, std::nullopt); }

void Gpu::set_governor(Governor* governor) { model_->set_governor(governor); }

void Gpu::announce(ClientId client) { model_->announce(client); }

void Gpu::retract(ClientId client) { model_->retract(client); }

ClientUsage Gpu::usage(ClientId client) const { return model_->usage(client); }

void Gpu::log_sm_ns(std::vector<double>* log) { model_->books().log_sm_ns(log); }

void Gpu::add_sm_ns(ClientId client, std::span<const double> log) {
  for (const double sm_ns : log) model_->books().add_sm_ns(client, sm_ns);
}

program::SharingMode Gpu::mode() const { return model_->mode(); }

bool Gpu::freezes_contexts() const {
  using enum program::SharingMode;
  return mode() == kTimeSliced || mode() == kIdleOnly || mode() == kLeftover;
}

const hardware::GpuSpec& Gpu::spec() const { return model_->spec(); }

void Gpu::on_event(SimTime now) { model_->on_event(now); }

}  // namespace bubblesim::gpu

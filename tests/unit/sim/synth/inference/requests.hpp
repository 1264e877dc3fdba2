// Requests for tests: shipped models on an H100 with a host time that the test chooses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/synthesise.hpp"
#include "sim/workload/step_program.hpp"
#include "tests/fault.hpp"

namespace bubblesim::synth {

inline std::string configs(const std::string& folder) {
  return std::string(BUBBLESIM_SOURCE_DIR) + "/configs/" + folder;
}

/// Every launch costs the host `host_time`, of which the call itself takes 1 us.
inline InferenceRequest request(const std::string& model, Duration host_time = Duration{10'000}) {
  InferenceRequest out;
  out.model = must(model::find_model(model, configs("models")));
  out.gpu = must(hardware::find_gpu_spec("h100", configs("devices")));
  out.efficiency = must(model::find_efficiency("h100", configs("efficiency")));
  out.software.launch_call = Duration{1'000};
  out.software.forward_gap = host_time - Duration{1'000};
  return out;
}

inline InferenceRequest generation(std::uint64_t prompt, std::uint64_t output,
                                   DecodeMode decode = DecodeMode::kEager) {
  InferenceRequest out = request("llama2-7b");
  out.shape = Generation{prompt, output, decode, {}};
  return out;
}

inline InferenceProgram program_of(const InferenceRequest& request) {
  return must(inference_program(request));
}

inline std::string fault_of(const InferenceRequest& request) {
  return error_of(inference_program(request)).text();
}

/// Sets the program to a step of a server without other members.
inline std::uint32_t set_alone(workload::StepProgram& program, const serving::ScheduledStep& step,
                               bool queued = false) {
  return program.set(step, program.shape_of(step), queued);
}

inline std::uint64_t calls(const program::Program& program, program::StepKind kind) {
  const auto& steps = program.threads.front().steps;
  return static_cast<std::uint64_t>(std::count_if(
      steps.begin(), steps.end(), [&](const program::Step& step) { return step.kind == kind; }));
}

inline Duration device_time(const program::Program& program) {
  Duration total{};
  for (const program::Op& op : program.ops) total += op.duration;
  return total;
}

inline Duration time_of(const InferenceRequest& request) {
  workload::JobProgram job;
  job.ranks.push_back(program_of(request).program);
  return must(time_alone(job, request.gpu)).time;
}

}  // namespace bubblesim::synth

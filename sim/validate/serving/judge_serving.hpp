// Measured servers against simulated ones: of each bundle fifteen figures, time to first token,
// time per output token and latency at their mean, p50, p90, p95 and p99.
//
// Figures are those of LLMServingSim's `bench validate` (bench/core/validate.py), on both sides:
// time to first token and latency count from the instant at which the engine queued the request
// (arrivals are of another clock), time per output token is (last - first) / (tokens - 1), and
// percentiles lie between two values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/serving/request.hpp"
#include "sim/validate/error_summary.hpp"
#include "sim/validate/serving/bundle.hpp"
#include "sim/validate/serving/group_server.hpp"
#include "sim/validate/serving/server_setup.hpp"

namespace bubblesim::validate {

/// What a user sees of one request, in milliseconds.
struct RequestLatencies {
  double ttft = 0;
  std::optional<double> tpot;  ///< nothing: one token
  double latency = 0;
};

struct ServingFigure {
  std::string name;     ///< "ttft_p95"
  double measured = 0;  ///< ms
  double simulated = 0;
  /// Relative. Precondition: measured above 0.
  [[nodiscard]] double error() const { return simulated / measured - 1; }
};

struct JudgedRequest {
  std::string id;
  double queued_s = 0;  ///< measured, since the first arrival
  std::uint32_t preemptions = 0;  ///< simulated
  RequestLatencies measured;
  RequestLatencies simulated;
};

/// What others reach on the same run.
struct PeerError {
  std::string name;
  double mean = 0;  ///< of absolute errors, a share
};

struct JudgedBundle {
  std::string label;
  std::string gpu;
  std::string costs;  ///< where step times are from
  std::vector<ServingFigure> figures;
  ErrorSummary errors;  ///< shares
  std::optional<PeerError> peer;
  std::vector<JudgedRequest> requests;  ///< by arrival
  ServedLoad load;
  CounterSet counters;
};

/// The bundle's requests as a server takes them, from the first arrival on.
[[nodiscard]] std::vector<serving::Request> requests_of(const ServingBundle& bundle);

[[nodiscard]] CheckedResult<JudgedBundle> judge_bundle(const ServingBundle& bundle,
                                                       const SetupRequest& request);

}  // namespace bubblesim::validate

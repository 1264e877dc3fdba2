// A request in the environment of a job: values with their units, as on the command line.

#include "capture/protocol/capture_request.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

tl::unexpected<Error> refuse(const char* name, const std::string& found,
                             const std::string& expected) {
  return fail(name, {}, "found " + quote_found(found) + "; expected " + expected);
}

// Empty counts as unset: shells write `VARIABLE= command` to unset a variable for one command.
std::optional<std::string> value_of(const Environment& env, const char* name) {
  auto value = env(name);
  return value && value->empty() ? std::nullopt : value;
}

template <class T>
Result<std::optional<T>> read_integer(const Environment& env, const char* name, T low, T high) {
  const auto value = value_of(env, name);
  if (!value) return std::optional<T>{};
  const auto number = parse_number<T>(*value);
  if (!number || *number < low || *number > high) {
    return refuse(name, *value, "a whole number from " + std::to_string(low) + " to " +
                                    std::to_string(high));
  }
  return number;
}

Result<Duration> read_span(const char* name, const std::string& value, Duration least,
                           const std::string& expected, const std::string& unit = {}) {
  const auto span = parse_duration(value + unit);
  if (!span || *span < least || *span > kLongestSpan) return refuse(name, value, expected);
  return *span;
}

// "now", seconds without a unit, or a span with one.
Result<Duration> read_delay(const std::string& value) {
  if (value == "now") return Duration{};
  const bool bare = value.find_first_not_of("0123456789.") == std::string::npos;
  return read_span(kEnvStart, value, Duration{},
                   "\"now\", or the delay: seconds such as \"5\" or a time such as \"500ms\", at "
                   "most 366 days",
                   bare ? "s" : "");
}

Result<std::optional<Duration>> read_duration(const Environment& env, const char* name) {
  const auto value = value_of(env, name);
  if (!value) return std::optional<Duration>{};
  BUBBLESIM_ASSIGN_OR_RETURN(
      const Duration span,
      read_span(name, *value, Duration{1},
                "a time such as \"10s\" or \"500ms\", more than 0 and at most 366 days"));
  return std::optional<Duration>{span};
}

Result<std::optional<std::uint64_t>> read_max_bytes(const Environment& env) {
  const auto value = value_of(env, kEnvMaxBytes);
  if (!value) return std::optional<std::uint64_t>{};
  const auto bytes = parse_bytes(*value);
  if (!bytes || *bytes < kLeastMaxBytes) {
    return refuse(kEnvMaxBytes, *value, "a size such as \"500MB\" or \"2GiB\", at least 1MiB");
  }
  return std::optional<std::uint64_t>{bytes->value};
}

/// One of some words; unset: the first.
template <class T, std::size_t N>
Result<T> read_choice(const Environment& env, const char* name,
                      const std::array<Choice<T>, N>& words) {
  const auto value = value_of(env, name);
  std::string allowed;
  for (const Choice<T>& word : words) {
    if (!value || *value == word.name) return word.value;
    allowed += (allowed.empty() ? "\"" : " or \"") + std::string(word.name) + "\"";
  }
  return refuse(name, *value, allowed);
}

constexpr std::array<Choice<bool>, 2> kOnWords{{{"1", true}, {"0", false}}};

}  // namespace

Result<std::optional<StartRequest>> request_from_environment(const Environment& env) {
  const auto start = value_of(env, kEnvStart);
  if (!start) return std::optional<StartRequest>{};
  StartRequest request;
  BUBBLESIM_ASSIGN_OR_RETURN(request.delay, read_delay(*start));
  const auto output = value_of(env, kEnvOutput);
  if (!output) {
    return fail(kEnvOutput, {}, std::string("is not set; with ") + kEnvStart +
                                    " it names the file or folder to write");
  }
  if (auto good = check_output(*output); !good) return fail(kEnvOutput, {}, good.error().message);
  request.output = *output;
  BUBBLESIM_ASSIGN_OR_RETURN(request.duration, read_duration(env, kEnvDuration));
  BUBBLESIM_ASSIGN_OR_RETURN(request.max_bytes, read_max_bytes(env));
  BUBBLESIM_ASSIGN_OR_RETURN(request.iterations,
                             read_integer<std::uint32_t>(env, kEnvIterations, 1U, ~0U));
  BUBBLESIM_ASSIGN_OR_RETURN(
      request.start_at_unix_s,
      read_integer<std::int64_t>(env, kEnvStartAt, 0, kLastStartUnixSeconds));
  BUBBLESIM_ASSIGN_OR_RETURN(request.first_iteration,
                             read_integer<std::uint32_t>(env, kEnvFirstIteration, 0U, ~0U));
  BUBBLESIM_ASSIGN_OR_RETURN(request.every, read_integer<std::uint32_t>(env, kEnvEvery, 1U, ~0U));
  BUBBLESIM_ASSIGN_OR_RETURN(request.last, read_duration(env, kEnvLast));
  BUBBLESIM_ASSIGN_OR_RETURN(request.graphs, read_choice(env, kEnvGraphs, kGraphsWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.memory, read_choice(env, kEnvMemory, kOnWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.readers, read_choice(env, kEnvReaders, kReadersWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.detail, read_choice(env, kEnvDetail, kDetailsWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.names, read_choice(env, kEnvNames, kNamesWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.counted, read_choice(env, kEnvCount, kCountWords));
  BUBBLESIM_ASSIGN_OR_RETURN(request.signal, read_choice(env, kEnvSignal, kSignalWords));
  return std::optional<StartRequest>{std::move(request)};
}

std::map<std::string, std::string> environment_of(const StartRequest& request) {
  std::map<std::string, std::string> variables{
      {kEnvStart, request.delay == Duration{} ? "now" : format_duration(request.delay)},
      {kEnvOutput, request.output},
      {kEnvGraphs, std::string(choice_name(request.graphs, kGraphsWords))},
      {kEnvMemory, request.memory ? "1" : "0"},
      {kEnvReaders, std::string(choice_name(request.readers, kReadersWords))},
      {kEnvDetail, std::string(choice_name(request.detail, kDetailsWords))},
      {kEnvNames, std::string(choice_name(request.names, kNamesWords))},
      {kEnvCount, std::string(choice_name(request.counted, kCountWords))},
      {kEnvSignal, std::string(choice_name(request.signal, kSignalWords))}};
  if (request.duration) variables[kEnvDuration] = format_duration(*request.duration);
  if (request.max_bytes) variables[kEnvMaxBytes] = format_bytes(Bytes{*request.max_bytes});
  if (request.iterations) variables[kEnvIterations] = std::to_string(*request.iterations);
  if (request.first_iteration)
    variables[kEnvFirstIteration] = std::to_string(*request.first_iteration);
  if (request.every) variables[kEnvEvery] = std::to_string(*request.every);
  if (request.last) variables[kEnvLast] = format_duration(*request.last);
  if (request.start_at_unix_s) variables[kEnvStartAt] = std::to_string(*request.start_at_unix_s);
  return variables;
}

}  // namespace bubblesim::capture

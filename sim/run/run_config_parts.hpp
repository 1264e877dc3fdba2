// Internal to the run config reader: parts that its files share. Only run_config*.cpp include this
// file.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run::config_detail {

/// Whether a path to a missing file is a fault.
enum class FileCheck : std::uint8_t { kMustExist, kNone };

/// Spans in configs: long enough for any run, short enough that sums of them never overflow.
inline constexpr Duration kLongestSpan = std::chrono::hours{24 * 365};
inline constexpr Range<Duration> kSpan{Duration::zero(), kLongestSpan};
inline constexpr Range<Duration> kPositiveSpan{Duration{1}, kLongestSpan};
inline constexpr Range<Bytes> kPositiveBytes{Bytes{1}};

/// Speed of hosts over their recorded speed: recorders and busy machines slow recorded hosts down.
inline constexpr Range<double> kHostSpeed{0.01, 100};

/// Formats of recorded requests.
inline constexpr std::array<Choice<workload::ArrivalFormat>, 7> kFormats{
    {{"azure", workload::ArrivalFormat::kAzure},
     {"mooncake", workload::ArrivalFormat::kMooncake},
     {"gaps", workload::ArrivalFormat::kGaps},
     {"splitwise", workload::ArrivalFormat::kSplitwise},
     {"servegen", workload::ArrivalFormat::kServegen},
     {"queries", workload::ArrivalFormat::kQueries},
     {"bundle", workload::ArrivalFormat::kBundle}}};

/// The context of every part of the reader.
struct ReadContext {
  std::filesystem::path folder;  ///< the folder where relative paths begin
  FileCheck files = FileCheck::kNone;
};

/// The path, resolved against the config's folder. `place` is a key of `reader`, or "key/index".
[[nodiscard]] std::string resolve(const ReadContext& context, ObjectReader& reader,
                                  std::string_view place, const std::string& path);
/// A required key that holds a path.
[[nodiscard]] std::string read_path(const ReadContext& context, ObjectReader& reader,
                                    std::string_view key);
/// A required text that is not empty.
[[nodiscard]] std::string read_name(ObjectReader& reader, std::string_view key);

/// "training/synth": a job by the names of its model, plan, cluster and other parts.
[[nodiscard]] synth::JobNames read_synth(const ReadContext& context, ObjectReader reader);

/// A required name: an id stays as it is, a path is resolved against the config's folder.
[[nodiscard]] std::string read_id(const ReadContext& context, ObjectReader& reader,
                                  std::string_view key);
[[nodiscard]] std::optional<std::string> read_optional_id(const ReadContext& context,
                                                          ObjectReader& reader,
                                                          std::string_view key);

/// A filler's program that is made from a model.
[[nodiscard]] synth::InferenceNames read_model_program(const ReadContext& context,
                                                       ObjectReader& program);

/// The engine's server of a filler's program, if it names one: `names.engine`, and the drafting
/// method.
void read_engine_program(const ReadContext& context, ObjectReader& program,
                         synth::InferenceNames& names);

[[nodiscard]] FillerConfig read_filler(const ReadContext& context, ObjectReader& reader);

/// "policies": a list of names and of objects.
[[nodiscard]] std::vector<PolicyChoice> read_policies(ObjectReader& root, const std::string& file,
                                                      const policy::Registry& registry,
                                                      Errors& errors);

}  // namespace bubblesim::run::config_detail

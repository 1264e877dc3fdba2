// Measured sharing of one GPU, from tables of several forms, as rows of one: a scene (who runs
// where, under which system) and the figures that were measured of it. The form of a table follows
// from its columns (sharing_table.cpp). What the columns do not say (the device,
// how requests came, which policy stands for each system): configs/validation/*.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/validate/pair_workload.hpp"
#include "sim/validate/row_role.hpp"
#include "sim/validate/table_cells.hpp"

namespace bubblesim::validate {

/// What a figure is of a run's clients; `client` is its index.
enum class Quantity : std::uint8_t {
  kShare,       ///< passes a second, relative to the client alone
  kSum,         ///< passes a second of all clients, relative to the first one alone
  kTime,        ///< mean time of a pass, relative to the client alone
  kMean,        ///< mean time of a pass, ms
  kPercentile,  ///< of times of a pass, ms
};

struct SharingFigure {
  std::string metric;  ///< as the table's column, or its cell, calls it
  Quantity quantity = Quantity::kShare;
  std::size_t client = 0;
  double percent = 0;  ///< kPercentile
  double measured = 0;
  double simulated = 0;
};

enum class Pace : std::uint8_t {
  kLoop,      ///< the next pass begins when one has ended
  kEven,      ///< one pass at random within each of equally many expected arrivals
  kPeriodic,  ///< one pass a period
};

struct SharingClient {
  WorkloadRole role = WorkloadRole::kTraining;
  std::string workload;     ///< as the table calls it
  std::uint32_t batch = 0;  ///< of models and kernels that say "batch": "table"
  double solo_ms = 0;       ///< a pass alone, which it is scaled to; 0: as the workload says
  Pace pace = Pace::kLoop;
  double per_s = 0;         ///< passes asked for, unless kLoop
  std::uint32_t epoch = 0;  ///< kLoop: after so many passes the host pauses; 0: never
  double pause_ms = 0;
  double between_ms = 0;    ///< kLoop with epochs: host time between passes
  double feed_ms = 0;       ///< kLoop with epochs: the data loader's, of a pass's input

  friend bool operator==(const SharingClient&, const SharingClient&) = default;
};

struct SharingRow {
  std::string table;    ///< file name without ".csv"
  RowRole role = RowRole::kJudge;
  std::string subject;  ///< whose systems are compared: "BERT beside PointNet"
  std::string system;
  std::string note;     ///< why it is not predicted; empty if it is to be
  std::string device;   ///< a file of configs/devices; empty: the setting's
  std::uint32_t instance = 0;       ///< MIG compute slices that all clients share; 0: the GPU
  std::uint32_t sm_percentage = 0;  ///< of the first client; 0: no cap
  std::uint32_t partition = 0;      ///< MIG compute slices of the first client; 0: no partition
  std::vector<SharingClient> clients;
  std::vector<SharingFigure> figures;
  std::vector<std::string> left_out;  ///< metrics that are blank or 0 in the table
};

struct SystemSetting {
  std::string name;    ///< as the table calls it
  std::string policy;  ///< of the registry
  std::string case_name;  ///< of rows whose subject begins so; empty: of all
  std::vector<std::pair<std::string, JsonScalar>> parameters;
};

/// What of a run was measured.
struct MeasuredSpan {
  std::string case_name;  ///< of rows whose subject begins so
  Duration from{};
  Duration until{};
};

struct SharingSetting {
  std::string path;
  std::string device;       ///< a file of configs/devices and of configs/efficiency
  DeviceNames devices;      ///< those of the file, and ids and recorded names of device files
  double load = 0.5;        ///< of services beside a training job: solo time over all time
  Duration burst{};         ///< requests within such a span come together; 0: each by itself
  std::uint64_t seed = 1;
  Duration least_length{};  ///< of a run
  std::uint32_t requests = 60;  ///< a run is as long as so many passes take, if that is longer
  /// Runs of a row; in run k loops begin k / starts of a pass after one another. 1: as far apart as
  /// they can. A prime above the number of clients has each two of them stand everywhere.
  std::uint32_t starts = 1;
  double latencies_from = 0;    ///< the first share of passes gives no latency
  std::vector<MeasuredSpan> spans;  ///< in place of `least_length` and `requests`; may be empty
  std::uint32_t epoch = 0;      ///< passes between the pauses of loops that pause; 0: they do not
  Duration epoch_pause{};       ///< of such a loop, alone
  Duration step_pause{};        ///< of such a loop, between passes whose input is there
  std::vector<SystemSetting> systems;
};

/// Faults, all at once: a form that is not known, a missing column, text where a number is
/// expected, a negative figure, an unknown role. A row that cannot be predicted as it is has a
/// note.
[[nodiscard]] CheckedResult<std::vector<SharingRow>> read_sharing_rows(
    const CsvTable& table, const SharingSetting& setting);

/// Columns of the table that its form does not read, in their order.
[[nodiscard]] std::vector<std::string> unread_columns(const CsvTable& table);

/// "colocation_a100" of "any/colocation_a100.csv": a table's name, and its setting's.
[[nodiscard]] std::string sharing_table_name(const CsvTable& table);

/// The name of the setting of configs/validation that a table of another name takes: that of the
/// shipped table whose columns it has. Fault: it has the columns of none.
[[nodiscard]] Result<std::string> setting_of_form(const CsvTable& table);

/// `name` is a path, else the id of a file in configs/validation.
[[nodiscard]] CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                                 const std::string& configs);

/// The tables that a judge looks for in a folder.
[[nodiscard]] std::vector<std::string> sharing_tables();

}  // namespace bubblesim::validate

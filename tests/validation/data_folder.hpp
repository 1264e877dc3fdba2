// Which files of the data folder (BUBBLESIM_DATA_DIR) are recordings, and which of them are the
// ranks of one job. Both follow from its INDEX.tsv, so that a job that is added there is taken by
// every test.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace bubblesim::validation {

/// Files that are read together.
struct RecordedJob {
  std::string name;                ///< of the file or folder, below the data folder
  std::vector<std::string> paths;  ///< one a rank

  /// For GoogleTest, which prints what a case is about.
  friend std::ostream& operator<<(std::ostream& out, const RecordedJob& job) {
    return out << job.name;
  }
};

/// Whether the folder is there, with its index.
[[nodiscard]] bool has_data(const std::string& data_folder);

/// Every Kineto file of INDEX.tsv by itself, in the order of the index.
[[nodiscard]] std::vector<RecordedJob> single_files(const std::string& data_folder);

/// Jobs of two ranks or more, in order of their names: recordings of the same GPU and world size
/// from one place. A place is a folder, or, where each rank has a folder of its own, the folder
/// above. Ranks of a job follow each other by name: a rank that comes a second time begins the
/// place's next run.
[[nodiscard]] std::vector<RecordedJob> whole_jobs(const std::string& data_folder);

/// Everything that a user would bring as one job: the jobs above; each Kineto file and each Nsight
/// report that is no rank of them; each file that the index does not list and whose name is that
/// of a recording (.btr, .sqlite, .pt.trace.json, plain or .gz). In order of their names.
[[nodiscard]] std::vector<RecordedJob> every_job(const std::string& data_folder);

}  // namespace bubblesim::validation

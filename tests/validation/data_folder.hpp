// The files of the data folder (BUBBLESIM_DATA_DIR) that are recordings, and those that are the
// ranks of one job. Both follow from the folder's INDEX.tsv, so every test uses a job that is added
// there.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace bubblesim::validation {

/// A recorded job: the files that are read together.
struct RecordedJob {
  std::string name;                ///< of the file or folder, below the data folder
  std::vector<std::string> paths;  ///< one a rank

  /// For GoogleTest, which prints the parameter of a case.
  friend std::ostream& operator<<(std::ostream& out, const RecordedJob& job) {
    return out << job.name;
  }
};

/// True if the folder and its index exist.
[[nodiscard]] bool has_data(const std::string& data_folder);

/// Every Kineto file of INDEX.tsv as a job of its own, in the order of the index.
[[nodiscard]] std::vector<RecordedJob> single_files(const std::string& data_folder);

/// Jobs of two ranks or more, in order of their names: recordings of the same GPU and world size
/// from one place. A place is a folder, or, where each rank has a folder of its own, the folder
/// above. Files are taken in order of name: a rank number that comes a second time begins the next
/// job of the place.
[[nodiscard]] std::vector<RecordedJob> whole_jobs(const std::string& data_folder);

/// Every set of files that a user would read as one job, in order of name: the whole jobs; each
/// Kineto file and each Nsight report that is no rank of them; each file that the index does not
/// list and that has the name of a recording (.btr, .sqlite, .pt.trace.json, plain or .gz).
[[nodiscard]] std::vector<RecordedJob> every_job(const std::string& data_folder);

}  // namespace bubblesim::validation

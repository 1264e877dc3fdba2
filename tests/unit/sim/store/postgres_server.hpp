// A PostgreSQL server of the test's own: in a temporary folder, on a Unix socket there, as an
// unprivileged user, gone when the object is.
#pragma once

#include <memory>
#include <string>

namespace bubblesim::store {

class PostgresServer {
 public:
  /// Null with the reason, where the server's packages are absent or it does not start.
  [[nodiscard]] static std::unique_ptr<PostgresServer> start(std::string& why_not);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// A new, empty database.
  [[nodiscard]] std::string new_database();
  /// Runs SQL in the database of that connection string, with psql; its output.
  [[nodiscard]] std::string sql(const std::string& connection, const std::string& text) const;
  void stop();

 private:
  PostgresServer(std::string programs, std::string folder)
      : programs_(std::move(programs)), folder_(std::move(folder)) {}
  /// As the server's user; the exit status.
  [[nodiscard]] int run(const std::string& command) const;

  std::string programs_;  ///< folder of initdb and pg_ctl
  std::string folder_;
  int databases_ = 0;
  bool started_ = false;
};

}  // namespace bubblesim::store

#include "tests/unit/sim/store/postgres_server.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace bubblesim::store {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

/// Debian keeps a server's programs in a folder a version.
std::string find_programs() {
  std::error_code absent;
  std::set<std::string> found;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", absent)) {
    if (fs::exists(version.path() / "bin/initdb")) found.insert((version.path() / "bin").string());
  }
  return found.empty() ? "" : *found.rbegin();
}

}  // namespace

std::unique_ptr<PostgresServer> PostgresServer::start(std::string& why_not) {
  const std::string programs = find_programs();
  if (programs.empty()) {
    why_not = "no PostgreSQL server: the package postgresql is not installed";
    return nullptr;
  }
  std::string pattern = (fs::temp_directory_path() / "store_postgres_XXXXXX").string();
  std::unique_ptr<PostgresServer> server(new PostgresServer(programs, mkdtemp(pattern.data())));
  if (geteuid() == 0 && chown(server->folder_.c_str(), kNobody, kNobody) != 0) {
    why_not = "no PostgreSQL server: its folder cannot be given to nobody";
    return nullptr;
  }
  const std::string& folder = server->folder_;
  const std::string initialise =
      programs + "/initdb -D " + folder + "/data -A trust -U bubblesim -E UTF8 --no-sync";
  const std::string settings = "-k " + folder + " -c listen_addresses= -c fsync=off "
                               "-c shared_buffers=16MB -c max_connections=20";
  const std::string start = programs + "/pg_ctl -D " + folder + "/data -w -l " + folder +
                            "/log -o \"" + settings + "\" start";
  if (server->run(initialise) != 0 || server->run(start) != 0) {
    why_not = "no PostgreSQL server: initdb or pg_ctl failed";
    return nullptr;
  }
  server->started_ = true;
  return server;
}

PostgresServer::~PostgresServer() {
  stop();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void PostgresServer::stop() {
  if (started_) static_cast<void>(run(programs_ + "/pg_ctl -D " + folder_ + "/data -m fast stop"));
  started_ = false;
}

int PostgresServer::run(const std::string& command) const {
  const std::string as_nobody = geteuid() == 0 ? "runuser -u nobody -- " : "";
  const std::string whole =
      "cd " + folder_ + " && " + as_nobody + command + " > /dev/null 2>&1 < /dev/null";
  return std::system(whole.c_str());
}

std::string PostgresServer::new_database() {
  const std::string name = "results" + std::to_string(databases_++);
  const auto at = [&](const std::string& database) {
    return "postgresql://bubblesim:secret@/" + database + "?host=" + folder_;
  };
  static_cast<void>(sql(at("postgres"), "CREATE DATABASE " + name));
  return at(name);
}

std::string PostgresServer::sql(const std::string& connection, const std::string& text) const {
  const std::string command =
      programs_ + "/psql -X -q -A -t -d '" + connection + "' -c \"" + text + "\" 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "psql did not start";
  std::string output;
  std::array<char, 256> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  pclose(pipe);
  return output;
}

}  // namespace bubblesim::store

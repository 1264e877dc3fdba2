// The store in PostgreSQL, against a real server: what every store does, and faults of servers.
// One process for all cases, so that one server serves them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "tests/fault.hpp"
#include "tests/unit/sim/store/sample_record.hpp"
#include "tests/unit/sim/store/store_cases.hpp"

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

/// A PostgreSQL server of the test's own: in a temporary folder, on a Unix socket there, as an
/// unprivileged user, gone when the object is.
class PostgresServer {
 public:
  /// Null with the reason, where the server's packages are absent or it does not start.
  [[nodiscard]] static std::unique_ptr<PostgresServer> start(std::string& why_not) {
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
    const std::string settings = "-k " + folder +
                                 " -c listen_addresses= -c fsync=off "
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
  ~PostgresServer() {
    const std::string stop = programs_ + "/pg_ctl -D " + folder_ + "/data -m fast stop";
    if (started_) static_cast<void>(run(stop));
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// A new, empty database.
  [[nodiscard]] std::string new_database() {
    const std::string name = "results" + std::to_string(databases_++);
    const auto at = [&](const std::string& database) {
      return "postgresql://bubblesim:secret@/" + database + "?host=" + folder_;
    };
    static_cast<void>(sql(at("postgres"), "CREATE DATABASE " + name));
    return at(name);
  }
  /// Runs SQL in the database of that connection string, with psql; its output.
  [[nodiscard]] std::string sql(const std::string& connection, const std::string& text) const {
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

 private:
  PostgresServer(std::string programs, std::string folder)
      : programs_(std::move(programs)), folder_(std::move(folder)) {}
  /// As the server's user; the exit status.
  [[nodiscard]] int run(const std::string& command) const {
    const std::string as_nobody = geteuid() == 0 ? "runuser -u nobody -- " : "";
    const std::string whole =
        "cd " + folder_ + " && " + as_nobody + command + " > /dev/null 2>&1 < /dev/null";
    return std::system(whole.c_str());
  }

  std::string programs_;  ///< folder of initdb and pg_ctl
  std::string folder_;
  int databases_ = 0;
  bool started_ = false;
};

using testing::AllOf, testing::HasSubstr, testing::Not;

/// Started by the first case that asks, stopped after the last.
class Server final : public testing::Environment {
 public:
  void TearDown() override { server_.reset(); }
  PostgresServer* get(std::string& why_not) {
    if (!server_ && reason_.empty()) server_ = PostgresServer::start(reason_);
    why_not = reason_;
    return server_.get();
  }

 private:
  std::unique_ptr<PostgresServer> server_;
  std::string reason_;
};

auto* const server = static_cast<Server*>(testing::AddGlobalTestEnvironment(new Server));

class Database final : public StorePlace {
 public:
  explicit Database(std::string where) : where_(std::move(where)) {}
  [[nodiscard]] std::string where() const override { return where_; }

 private:
  std::string where_;
};

std::unique_ptr<StorePlace> make_place(std::string& why_not) {
  PostgresServer* const running = server->get(why_not);
  return running ? std::make_unique<Database>(running->new_database()) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreCases,
                         testing::Values(StoreBackend{"postgres", make_place}));

class PostgresStore : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    running_ = server->get(why_not);
    if (!running_) GTEST_SKIP() << why_not;
    where_ = running_->new_database();
  }
  [[nodiscard]] std::string fault(const std::string& where) const {
    const auto store = open_store(where, StoreAccess::kWrite);
    return store ? "opened" : store.error().text();
  }

  PostgresServer* running_ = nullptr;
  std::string where_;
  const RunRecord record_ = sample_record(4);
};

TEST_F(PostgresStore, FaultsNameTheServerAndNeverThePassword) {
  const std::string text = fault("postgresql://someone:secret@/nowhere?host=/nonexistent");
  EXPECT_THAT(text, AllOf(HasSubstr("/nonexistent"), HasSubstr("cannot be reached")));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(fault("postgresql://a:secret@b:port/c?d=e"),
              AllOf(HasSubstr("is no connection string"), Not(HasSubstr("secret"))));
  std::string missing = where_;
  missing.replace(missing.find("/results"), 8, "/missing");
  EXPECT_THAT(fault(missing), AllOf(HasSubstr("does not exist"), Not(HasSubstr("secret"))));
}

TEST_F(PostgresStore, AReaderOfAnEmptyDatabaseIsToldThatItIsNoStore) {
  const auto store = error_of(open_store(where_, StoreAccess::kRead));
  EXPECT_THAT(store.text(), HasSubstr("is no results store"));
}

TEST_F(PostgresStore, ANewerVersionIsRefused) {
  ASSERT_TRUE(open_store(where_, StoreAccess::kWrite));
  EXPECT_EQ(running_->sql(where_, "UPDATE meta SET value = '9' WHERE name = 'schema_version'"), "");
  EXPECT_THAT(fault(where_), AllOf(HasSubstr("newer bubblesim"), HasSubstr("version 9")));
}

TEST_F(PostgresStore, OtherProgramsReadTheView) {
  ASSERT_TRUE((*open_store(where_, StoreAccess::kWrite))->add({&record_, 1}));
  EXPECT_EQ(running_->sql(where_, "SELECT policy, plan_index FROM results ORDER BY policy"),
            "exclusive|4\nmps|4\n");
}

TEST_F(PostgresStore, AChangedValueIsFoundByTheCheck) {
  const auto store = open_store(where_, StoreAccess::kWrite);
  ASSERT_TRUE((*store)->add({&record_, 1}));
  EXPECT_TRUE((*store)->check());
  EXPECT_EQ(running_->sql(where_, "UPDATE rows SET events = events + 1"), "");
  EXPECT_THAT(error_of((*store)->check()).text(), HasSubstr("check sum"));
}

TEST_F(PostgresStore, TextsThatItCannotHoldAreRefusedAndTheStoreGoesOn) {
  RunRecord record = record_;
  record.run.config = std::string("a\0b", 3);
  const auto store = open_store(where_, StoreAccess::kWrite);
  const auto added = error_of((*store)->add({&record, 1}));
  EXPECT_THAT(added.text(), HasSubstr("NUL"));
  record.run.config = "\xFF";
  EXPECT_FALSE((*store)->add({&record, 1}));
  record.run.config = "{}";
  EXPECT_EQ((*store)->add({&record, 1}).value_or(9), 1U);
}

TEST_F(PostgresStore, ALostServerIsAFaultThatSaysWhatIsKept) {
  const auto store = open_store(where_, StoreAccess::kWrite);
  const auto pid = running_->sql(where_, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                         "WHERE application_name = 'bubblesim'");
  EXPECT_THAT(error_of((*store)->add({&record_, 1})).text(),
              HasSubstr("what was stored before is kept"));
}

}  // namespace
}  // namespace bubblesim::store

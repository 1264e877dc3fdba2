// Built where libpq was not found.
#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

Result<std::unique_ptr<SqlDatabase>> open_postgres(const std::string&, StoreAccess) {
  return fail("this bubblesim was built without PostgreSQL (libpq-dev was absent); use a file, "
              "or build it where libpq-dev is installed");
}

}  // namespace bubblesim::store

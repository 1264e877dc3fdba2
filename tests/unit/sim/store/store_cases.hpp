// The contract of the results store: tests that run on every backend.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "sim/store/results_store.hpp"

namespace bubblesim::store {

/// A place for one store, empty at first, with the text that opens it.
class StorePlace {
 public:
  virtual ~StorePlace() = default;
  [[nodiscard]] virtual std::string where() const = 0;
};

/// Makes a place; null, with the reason in `why_not`, if the backend is not available.
using MakePlace = std::function<std::unique_ptr<StorePlace>(std::string& why_not)>;

struct StoreBackend {
  std::string name;
  MakePlace make;
};

class StoreCases : public testing::TestWithParam<StoreBackend> {
 protected:
  void SetUp() override {
    std::string why_not;
    place_ = GetParam().make(why_not);
    if (!place_) GTEST_SKIP() << why_not;
  }
  [[nodiscard]] std::unique_ptr<ResultsStore> open(StoreAccess access = StoreAccess::kWrite) {
    auto store = open_store(place_->where(), access);
    EXPECT_TRUE(store) << store.error().text();
    return store ? std::move(*store) : nullptr;
  }

  std::unique_ptr<StorePlace> place_;
};

}  // namespace bubblesim::store

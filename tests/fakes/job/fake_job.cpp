// A job without a GPU: does what its arguments say, one after the other (fake_verbs.hpp). Exit
// code: 0; 10 and more, if something that it checks of itself was wrong.
#include <cstdio>

#include "tests/fakes/job/fake_verbs.hpp"

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const int code = fake::do_verb(fake::parse_verb(arguments[i]));
    if (code == 0) continue;
    std::fprintf(stderr, "fake_job: '%s' failed with %d\n", arguments[i], code);
    return code;
  }
  return 0;
}

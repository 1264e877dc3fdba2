// A shared library that has nothing to do with policies.
extern "C" __attribute__((visibility("default"))) int answer() { return 42; }

// A library that was linked without what it calls.
extern "C" int missing_function();
extern "C" __attribute__((visibility("default"))) int answer() { return missing_function(); }

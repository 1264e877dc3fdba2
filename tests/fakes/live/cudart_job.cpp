// A program of NVIDIA's own runtime, linked into it: how that finds the driver's functions.
// Exit code: 0 if the runtime got as far as counting devices.
extern "C" int cudaGetDeviceCount(int*);

int main() {
  int count = 0;
  return cudaGetDeviceCount(&count) == 0 ? 0 : 1;
}

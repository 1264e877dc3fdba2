# Libraries that jobs load must load where the job runs, which may be a container that is older than
# the machine of the build. bubblesim_for_old_glibc(TARGET) links it so that it needs glibc 2.28
# (RHEL 8, manylinux_2_28), though this machine's, up to 2.36, is newer:
#  - functions that moved from libpthread, libdl and librt into libc (2.34) or have a newer version
#    are taken at their first version, from stubs of those libraries. The linker alone sees the
#    stubs; later glibcs have these libraries and versions, too.
#  - what glibc 2.28 has not is inside the target (old_glibc.c).
# tests/unit/capture/live/library_test.cpp holds the result.

if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(first GLIBC_2.2.5)
  set(later GLIBC_2.12)
else()
  set(first GLIBC_2.17)
  set(later "")
endif()
# All that may be used, inlined by no compiler or some: linkers read one libm.
set(glibc_libm.so.6
  acos asin atan atan2 cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
  fmin fmod frexp hypot ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf
  nearbyint nextafter pow remainder rint round scalbn sin sinh sqrt tan tanh tgamma trunc)
list(TRANSFORM glibc_libm.so.6 APPEND f OUTPUT_VARIABLE floats)
list(APPEND glibc_libm.so.6 ${floats})
set(glibc_libdl.so.2 dlopen dlclose dlsym dlvsym dlerror dladdr)
set(glibc_librt.so.1 shm_open shm_unlink)
set(glibc_libpthread.so.0
  pthread_create pthread_join pthread_detach pthread_once pthread_key_create __pthread_key_create
  pthread_key_delete pthread_getspecific pthread_setspecific pthread_sigmask pthread_mutexattr_init
  pthread_mutexattr_destroy pthread_mutexattr_setpshared pthread_rwlock_rdlock
  pthread_rwlock_wrlock pthread_rwlock_unlock)
set(glibc_later pthread_setname_np pthread_mutex_consistent pthread_mutexattr_setrobust)

set(glibc_folder ${PROJECT_BINARY_DIR}/old_glibc)
set(glibc_stubs "")
separate_arguments(glibc_flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
foreach(library IN ITEMS libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0)
  set(names ${glibc_${library}})
  string(JOIN ";" shown ${names})
  set(versions "${first} { global: ${shown}; local: *; };\n")
  if(library STREQUAL "libpthread.so.0")
    string(JOIN ";" shown ${glibc_later})
    if(later STREQUAL "")
      string(REPLACE "; local" "; ${shown}; local" versions "${versions}")
    else()
      string(APPEND versions "${later} { global: ${shown}; };\n")
    endif()
    list(APPEND names ${glibc_later})
  endif()
  list(TRANSFORM names REPLACE "(.+)" "void \\1(void) {}\n" OUTPUT_VARIABLE functions)
  list(JOIN functions "" functions)
  file(CONFIGURE OUTPUT ${glibc_folder}/${library}.c CONTENT "${functions}" @ONLY)
  file(CONFIGURE OUTPUT ${glibc_folder}/${library}.map CONTENT "${versions}" @ONLY)
  add_custom_command(OUTPUT ${glibc_folder}/${library}
    COMMAND ${CMAKE_C_COMPILER} ${glibc_flags} -shared -fPIC -nostdlib -fno-builtin -w
      -Wl,-soname,${library} -Wl,--version-script=${library}.map -o ${library} ${library}.c
    WORKING_DIRECTORY ${glibc_folder}
    DEPENDS ${glibc_folder}/${library}.c ${glibc_folder}/${library}.map)
  list(APPEND glibc_stubs ${glibc_folder}/${library})
endforeach()
add_custom_target(bubblesim_old_glibc DEPENDS ${glibc_stubs})
add_library(bubblesim_glibc_inside OBJECT EXCLUDE_FROM_ALL
  ${PROJECT_SOURCE_DIR}/scripts/cmake/old_glibc.c)
set_property(GLOBAL PROPERTY bubblesim_glibc_stubs ${glibc_stubs})

function(bubblesim_for_old_glibc target)
  # Sanitizers' own libraries are of this machine; of other processors the versions are not known.
  if(BUBBLESIM_SANITIZE OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    return()
  endif()
  get_property(stubs GLOBAL PROPERTY bubblesim_glibc_stubs)
  add_dependencies(${target} bubblesim_old_glibc)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:bubblesim_glibc_inside>)
  target_link_options(${target} PRIVATE
    -Wl,--push-state,--no-as-needed ${stubs} -Wl,--pop-state)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${stubs})
endfunction()

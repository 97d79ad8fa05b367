# oomlab_library(name SRCS ... [DEPS ...])   one static library a room, alias oomlab::name
function(oomlab_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(oomlab_${name} STATIC ${ARG_SRCS})
    target_link_libraries(oomlab_${name} PUBLIC oomlab_flags ${ARG_DEPS})
  else()
    add_library(oomlab_${name} INTERFACE)
    target_link_libraries(oomlab_${name} INTERFACE oomlab_flags ${ARG_DEPS})
  endif()
  add_library(oomlab::${name} ALIAS oomlab_${name})
endfunction()

# oomlab_program(name SRCS ... [DEPS ...])
function(oomlab_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE oomlab_flags ${ARG_DEPS})
endfunction()

# oomlab_test(name SRCS ... [DEPS ...] [LABELS ...] [TIMEOUT seconds])
# A doctest program; every case becomes a CTest entry room/<case>.
function(oomlab_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS slow)   # an empty list would take TIMEOUT for a label
  endif()
  add_executable(test_${name} ${ARG_SRCS} ${CMAKE_SOURCE_DIR}/tests/support/main.cpp)
  target_link_libraries(test_${name} PRIVATE oomlab_flags doctest::doctest ${ARG_DEPS})
  target_compile_definitions(test_${name} PRIVATE
    OOMLAB_SOURCE_DIR="${CMAKE_SOURCE_DIR}" OOMLAB_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  doctest_discover_tests(test_${name} TEST_PREFIX "${name}/"
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

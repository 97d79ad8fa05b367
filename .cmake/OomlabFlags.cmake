add_library(oomlab_flags INTERFACE)
target_include_directories(oomlab_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(oomlab_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(OOMLAB_WERROR)
  target_compile_options(oomlab_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(OOMLAB_SANITIZE)
  # Global, so that every object of the program agrees about it.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${OOMLAB_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${OOMLAB_SANITIZE})
endif()

# Speed of building only: nothing here changes what is built.
find_program(OOMLAB_CCACHE ccache)
if(OOMLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OOMLAB_CCACHE})
endif()
find_program(OOMLAB_MOLD mold)
if(OOMLAB_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

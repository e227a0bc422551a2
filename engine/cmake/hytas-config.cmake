include(${CMAKE_CURRENT_LIST_DIR}/hytas-targets.cmake)

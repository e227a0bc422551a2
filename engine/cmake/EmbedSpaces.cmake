# Writes OUTPUT, a C++ file that holds every engine/spaces/*.json as a string: an installed engine
# needs no data files.
function(hytas_embed_spaces template output)
  file(GLOB spaces CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/spaces/*.json)
  list(SORT spaces)
  set(HYTAS_EMBEDDED_SPACES "")
  foreach(space IN LISTS spaces)
    # A change of a space file must rewrite the C++ file.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${space})
    get_filename_component(name ${space} NAME_WE)
    file(READ ${space} text)
    # Pieces of at most 4000 characters: a string literal is only portable up to a limit.
    string(LENGTH "${text}" left)
    set(pieces "")
    set(at 0)
    while(at LESS left)
      string(SUBSTRING "${text}" ${at} 4000 piece)
      string(APPEND pieces "\n            R\"HYTAS(${piece})HYTAS\"")
      math(EXPR at "${at} + 4000")
    endwhile()
    string(APPEND HYTAS_EMBEDDED_SPACES "        {\"${name}\", ${pieces}},\n")
  endforeach()
  configure_file(${template} ${output} @ONLY)
endfunction()

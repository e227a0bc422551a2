// CMake generates this file in miniz's own build; a static library exports nothing.
#define MINIZ_EXPORT

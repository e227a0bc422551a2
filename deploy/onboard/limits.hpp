#pragma once
// Limits and tables that the Python package has as well. A comment names the Python value;
// tests/deploy/test_onboard_limits.py compares them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace hytas::onboard {

// Model files.
constexpr std::uint64_t most_bytes = 1ULL << 29;  // hytas.deploy.model_file.MOST_MODEL_BYTES
constexpr std::string_view checksum_entry =
    "rP\n\x0chytas.sha256\x12@";                     // hytas.deploy.model_file.CHECKSUM_ENTRY
constexpr std::string_view card_format = "2";        // hytas.model_card.FORMAT
constexpr std::int64_t most_patch_values = 1 << 24;  // hytas.model_card.MOST_PATCH_VALUES

// Updates.
constexpr std::string_view magic = "HYTASDELTA2\n";  // hytas.deploy.delta.DELTA_MAGIC
constexpr std::size_t digest_bytes = 32;             // hytas.deploy.delta.DIGEST
constexpr std::size_t group = 256;                   // hytas.deploy.delta.GROUP
constexpr std::uint64_t worst = 2;                   // hytas.deploy.delta._WORST

// Values of a cube.
constexpr std::int64_t most_rows = 16;      // hytas.data.patches.MOST_ROWS
constexpr std::int64_t most_pixels = 4096;  // hytas.data.patches.MOST_PIXELS
constexpr double farthest = 2.25;           // hytas.deploy.value_range.FARTHEST
constexpr double nearest = 0.3;             // hytas.deploy.value_range.NEAREST
constexpr double least_misfit = 0.15;       // hytas.data.preprocessing.LEAST_MISFIT
constexpr double most_backward = 0.7;       // hytas.data.preprocessing.MOST_BACKWARD
constexpr double least_spread = 1e-3;       // hytas.data.preprocessing.LEAST_SPREAD
constexpr std::size_t least_ordered = 8;    // hytas.data.preprocessing.LEAST_ORDERED

// Maps.
constexpr std::int64_t most_radius = 64;      // hytas.deploy.smoothing.MOST_RADIUS
constexpr double least_temperature = 0.01;    // hytas.deploy.smoothing.LEAST_TEMPERATURE
constexpr double least_probability = 1e-30;   // hytas.deploy.unknown.LEAST_NEAREST
constexpr std::int64_t largest_table = 4096;  // hytas.deploy.rasters._LARGEST_TABLE
constexpr std::array<double, 13> shares{
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5,
};  // hytas.deploy.unknown.SHARES

// Units of wavelengths in lower case and without the s of a plural, and their nanometres.
constexpr std::array<std::pair<std::string_view, double>, 26> length_units{{
    {"nm", 1.0},         {"nanometer", 1.0},  {"nanometre", 1.0}, {"nano", 1.0},
    {"um", 1e3},         {"µm", 1e3},         {"μm", 1e3},        {"micrometer", 1e3},
    {"micrometre", 1e3}, {"micron", 1e3},     {"micro", 1e3},     {"mm", 1e6},
    {"millimeter", 1e6}, {"millimetre", 1e6}, {"cm", 1e7},        {"centimeter", 1e7},
    {"centimetre", 1e7}, {"m", 1e9},          {"meter", 1e9},     {"metre", 1e9},
    {"angstrom", 0.1},   {"ångström", 0.1},   {"ångstrom", 0.1},  {"å", 0.1},
    {"a", 0.1},          {"aa", 0.1},
}};  // hytas.data.interpret.wavelengths.UNITS
constexpr std::array<std::string_view, 7> wavenumber_units{
    "1/cm", "cm-1", "cm^-1", "cm**-1", "cm⁻¹", "wavenumber", "reciprocal centimeter",
};  // hytas.data.interpret.wavelengths.UNITS
constexpr std::array<std::string_view, 6> no_units{
    "", "unknown", "index", "none", "1", "n/a",
};  // hytas.data.interpret.wavelengths.NO_UNIT
constexpr std::array<double, 2> safe_nm{200.0, 5500.0};  // hytas.data.interpret.wavelengths.UNITS
constexpr std::array<double, 2> safe_um{0.2, 20.0};      // hytas.data.interpret.wavelengths.UNITS
constexpr std::array<double, 2> safe_m{2e-7, 2e-5};      // hytas.data.interpret.wavelengths.UNITS

}  // namespace hytas::onboard

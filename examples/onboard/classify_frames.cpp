// Classify the frames of a sensor that come through a pipe:
//
//     sensor | classify_frames scene.onnx SAMPLES [LIBRARY] > map.raw
//
// A frame is its number and its size in bytes, 32 bits each in this machine's byte order, and then
// the raw values of one line, (samples, bands). A dropped frame, or one of another size, becomes a
// line without data. The map is one 32-bit class id for each pixel, line after line.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <hytas/onboard.hpp>
#include <iostream>
#include <vector>

using namespace hytas::onboard;

namespace {

struct Head {
    std::uint32_t number, bytes;
};

void write(const std::optional<MapLine>& line) {
    if (line) std::fwrite(line->classes.data(), sizeof(std::int32_t), line->classes.size(), stdout);
}

// The values of a frame; what is longer than a line is read and thrown away.
bool read(std::vector<std::byte>& values, const Head& head, std::size_t line_bytes) {
    values.resize(std::min<std::size_t>(head.bytes, line_bytes));
    if (std::fread(values.data(), 1, values.size(), stdin) != values.size()) return false;
    for (std::size_t left = head.bytes - values.size(); left > 0; --left)
        if (std::getchar() == EOF) return false;
    return true;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count < 3) {
        std::cerr << "usage: classify_frames MODEL.onnx SAMPLES [LIBRARY]\n";
        return 2;
    }
    Settings settings;
    if (count > 3) settings.library = arguments[3];
    Predictor predictor(arguments[1], {.samples = std::atoll(arguments[2])}, settings);
    std::cerr << predictor.memory() << " bytes for the pass; line 0 of the map comes with line "
              << predictor.delay() << "\n";

    std::vector<std::byte> values;
    values.reserve(predictor.line_bytes());
    std::uint32_t next = 0;
    for (Head head{}; std::fread(&head, sizeof head, 1, stdin) == 1; ++next) {
        for (; next < head.number; ++next) {
            std::cerr << "frame " << next << " was dropped\n";
            write(predictor.push_dropped());
        }
        if (!read(values, head, predictor.line_bytes())) break;  // the sensor ended in a frame
        if (head.bytes == predictor.line_bytes()) {
            write(predictor.push(values));
        } else {
            std::cerr << "frame " << next << " has " << head.bytes << " bytes\n";
            write(predictor.push_dropped());
        }
    }
    while (const auto line = predictor.finish()) write(line);
    return 0;
} catch (const Error& error) {
    std::cerr << name_of(error.status) << ": " << error.what() << "\n";
    return 2;
}

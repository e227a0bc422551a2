// Count the calls of operator new after the first line, and the bytes before it.
//   count_allocations LIBRARY MODEL CUBE.hdr MAP.hdr [values]    maps a cube
//   count_allocations LIBRARY MODEL SAMPLES guided|none [SHARE] < LINES
//     pushes lines, and writes classes and confidence, or values, of each

#include <cstdio>
#include <cstdlib>
#include <hytas/onboard.hpp>
#include <new>

namespace {

std::size_t calls = 0, bytes = 0;

void* counted(std::size_t size) {
    ++calls;
    bytes += size;
    void* const memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

using hytas::onboard::MapLine;

void write(const MapLine& line) {
    std::fwrite(line.classes.data(), sizeof line.classes[0], line.classes.size(), stdout);
    std::fwrite(line.confidence.data(), sizeof line.confidence[0], line.confidence.size(), stdout);
    std::fwrite(line.values.data(), sizeof line.values[0], line.values.size(), stdout);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

int main(int count, char** arguments) try {
    std::size_t first = 0, last = 0, memory = 0;
    const std::string input = arguments[3];
    if (input.ends_with(".hdr")) {
        hytas::onboard::CubeJob job;
        job.library = arguments[1], job.model = arguments[2], job.cube = input;
        job.map = arguments[4], job.confidence = count > 5 ? "" : job.map + ".sure.hdr";
        hytas::onboard::CubePass pass(job);
        memory = pass.memory();
        std::fprintf(stderr, "%zu %zu ", memory, bytes);
        pass.run([&] {
            last = calls;
            first = first == 0 ? last : first;
            return false;
        });
    } else {
        hytas::onboard::Settings settings{.library = arguments[1]};
        settings.smooth = arguments[4] == std::string("guided");
        if (count > 5) settings.unknown = std::atof(arguments[5]);
        hytas::onboard::Predictor predictor(arguments[2], {.samples = std::atoll(input.c_str())},
                                            settings);
        std::fprintf(stderr, "%zu %zu ", predictor.memory(), bytes);
        std::vector<std::byte> line(predictor.line_bytes());
        while (std::fread(line.data(), 1, line.size(), stdin) == line.size()) {
            if (const auto predicted = predictor.push(line)) write(*predicted);
            last = calls;
            first = first == 0 ? last : first;
        }
        while (const auto predicted = predictor.finish()) write(*predicted);
        last = calls;
    }
    std::fprintf(stderr, "%zu\n", last - first);
    return 0;
} catch (const hytas::onboard::Error& error) {
    std::fprintf(stderr, "%s: %s\n", hytas::onboard::name_of(error.status), error.what());
    return 2;
}

// hytas-onboard MODEL CUBE.hdr MAP.hdr [--library LIBONNXRUNTIME] [--threads N] [--smooth
// guided|none] [--confidence FILE.hdr] hytas-onboard --update DELTA MODEL NEW
//
// Classifies an ENVI cube line by line, as a push-broom sensor delivers it, with an exported scene
// graph.

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "classifier.hpp"
#include "delta.hpp"
#include "envi.hpp"
#include "error.hpp"
#include "model_file.hpp"
#include "ort.hpp"
#include "whole_file.hpp"

namespace onboard {
namespace {

// Each takes memory, and a slip of the keyboard should not take it all.
constexpr int most_threads = 1024;
constexpr const char* usage =
    "usage: hytas-onboard MODEL.onnx CUBE.hdr MAP.hdr [--library libonnxruntime.so] [--threads N] "
    "[--smooth guided|none] [--confidence FILE.hdr]";

constexpr const char* help =
    "usage: hytas-onboard MODEL.onnx CUBE.hdr MAP.hdr [--library libonnxruntime.so] [--threads N]\n"
    "       [--smooth guided|none] [--confidence FILE.hdr]\n"
    "       hytas-onboard --update DELTA MODEL.onnx NEW.onnx\n\n"
    "Classifies an ENVI cube line by line with a scene graph (hytas export RUN --formats "
    "onnx-scene).\n\n"
    "  MODEL.onnx   the scene graph\n"
    "  CUBE.hdr     the header of the cube; the data lie beside it\n"
    "  MAP.hdr      the header of the map to write; its data get the ending .img\n"
    "  --library    onnxruntime's library (default: libonnxruntime.so.1)\n"
    "  --threads    processor threads, 1 to 1024 (default: 1)\n"
    "  --smooth     guided removes speckle from the map, none does not (default: as the model "
    "says)\n"
    "  --confidence the header of a raster for the probability of each pixel's class\n"
    "  --update     write the model file NEW.onnx that a file of `hytas update make` makes of "
    "MODEL.onnx\n";

struct Options {
    std::string model, cube, map, library = "libonnxruntime.so.1", smooth, confidence;
    std::string delta;  // of --update; the cube is then empty, and the map is the new model
    int threads = 1;
};

Options parse(const std::vector<std::string>& arguments) {
    Options options;
    std::vector<std::string> files;
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        const std::string& argument = arguments[at];
        if (!argument.starts_with("--")) {
            files.push_back(argument);
            continue;
        }
        const bool known = argument == "--library" || argument == "--threads" ||
                           argument == "--smooth" || argument == "--confidence" ||
                           argument == "--update";
        if (!known) throw Error("no option " + argument + "; " + usage);
        if (++at == arguments.size()) throw Error(argument + " needs a value; " + usage);
        const std::string& value = arguments[at];
        if (argument == "--library") {
            options.library = value;
        } else if (argument == "--update") {
            options.delta = value;
        } else if (argument == "--smooth") {
            if (value != "guided" && value != "none")
                throw Error("--smooth: " + value + " must be guided or none");
            options.smooth = value;
        } else if (argument == "--confidence") {
            if (!value.ends_with(".hdr"))
                throw Error("--confidence: " + value + " must end in .hdr");
            options.confidence = value;
        } else {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), options.threads);
            if (error != std::errc() || end != value.data() + value.size() || options.threads < 1 ||
                options.threads > most_threads)
                throw Error("--threads: " + value + " must be 1 to " +
                            std::to_string(most_threads));
        }
    }
    if (!options.delta.empty()) {
        if (files.size() != 2) throw Error("--update: needs DELTA, the old model and the new one");
        options.model = files[0], options.map = files[1];
        return options;
    }
    if (files.size() != 3) throw Error(usage);
    if (!files[2].ends_with(".hdr")) throw Error("map: " + files[2] + " must end in .hdr");
    options.model = files[0], options.cube = files[1], options.map = files[2];
    return options;
}

// Bytes of a class id in the map: the smallest type that holds them all.
std::size_t width_of(const Card& card) {
    const auto [lowest, highest] = std::minmax_element(card.ids.begin(), card.ids.end());
    if (*lowest < 0 || *highest > std::numeric_limits<std::uint16_t>::max()) return 4;
    return *highest <= std::numeric_limits<std::uint8_t>::max() ? 1 : 2;
}

void write_place(std::ofstream& file, const EnviCube& cube) {
    for (const char* place : {"map info", "coordinate system string", "projection info"})
        if (const auto found = cube.fields().find(place); found != cube.fields().end())
            file << place << " = "
                 << (found->second.starts_with('{') ? found->second : "{" + found->second + "}")
                 << "\n";
}

void write_confidence_header(std::ofstream& file, const EnviCube& cube) {
    file << "ENVI\nsamples = " << cube.samples() << "\nlines = " << cube.lines()
         << "\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\ndata type = 4\ninterleave "
            "= bsq\nbyte order = 0\ndata ignore value = 0\n";
    write_place(file, cube);
}

void write_header(std::ofstream& file, const Card& card, const EnviCube& cube) {
    const std::size_t width = width_of(card);
    const std::int64_t highest = *std::max_element(card.ids.begin(), card.ids.end()),
                       lowest = *std::min_element(card.ids.begin(), card.ids.end());
    file << "ENVI\nsamples = " << cube.samples() << "\nlines = " << cube.lines()
         << "\nbands = 1\nheader offset = 0\nfile type = ENVI Classification\ndata type = "
         << (width == 1   ? 1
             : width == 2 ? 12
             : lowest < 0 ? 3
                          : 13)
         << "\ninterleave = bsq\nbyte order = 0\ndata ignore value = 0\n";
    if (lowest >= 0 && highest < 4096) {
        std::vector<std::string> names(static_cast<std::size_t>(highest) + 1);
        std::vector<std::int64_t> colours(3 * names.size());
        for (std::size_t number = 0; number < names.size(); ++number)
            names[number] = number == 0 ? "none" : "unused " + std::to_string(number);
        for (std::size_t index = 0; index < card.ids.size(); ++index) {
            const auto id = static_cast<std::size_t>(card.ids[index]);
            if (id == 0) continue;
            names[id] = card.names[index];
            for (const auto& [sign, instead] :
                 {std::pair(',', ';'), std::pair('{', '('), std::pair('}', ')')})
                std::replace(names[id].begin(), names[id].end(), sign, instead);
            std::copy_n(&card.palette[3 * index], 3, &colours[3 * id]);
        }
        file << "classes = " << names.size() << "\nclass names = {";
        for (std::size_t number = 0; number < names.size(); ++number)
            file << (number == 0 ? "" : ", ") << names[number];
        file << "}\nclass lookup = {";
        for (std::size_t at = 0; at < colours.size(); ++at)
            file << (at == 0 ? "" : ", ") << colours[at];
        file << "}\n";
    }
    write_place(file, cube);
}

bool same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
    std::error_code absent;
    return std::filesystem::equivalent(one, other, absent) ||
           std::filesystem::weakly_canonical(one) == std::filesystem::weakly_canonical(other);
}

// Refuse a map that would overwrite what it is made from.
void check_apart(const std::filesystem::path& header, const Options& options,
                 const EnviCube& cube) {
    for (const auto& file : {header, std::filesystem::path(header).replace_extension(".img")}) {
        const bool of_cube = same_file(file, cube.header()) || same_file(file, cube.data());
        if (of_cube || same_file(file, options.model))
            throw Error("map: " + file.string() + " is also a file of the " +
                        (of_cube ? "cube" : "model") + ": an output must be a file of its own");
        if (std::filesystem::is_directory(file))
            throw Error("map: " + file.string() + " is a folder; the name of a file is needed");
    }
}

void run(const Options& options) {
    std::optional<ModelFile> file(options.model);
    const Card card(*file);
    EnviCube cube(options.cube);
    const SceneModel model(options.library, options.model, file->bytes, options.threads);
    const std::string remark = file->note;
    file.reset();  // onnxruntime has its own copy, and memory is short on board
    Classifier classifier(model, card, cube,
                          options.smooth.empty() ? card.smooth : options.smooth == "guided");
    const std::filesystem::path header(options.map), sure(options.confidence);
    check_apart(header, options, cube);
    if (!sure.empty()) {
        check_apart(sure, options, cube);
        if (same_file(sure, header))
            throw Error("--confidence: " + sure.string() +
                        " is also the map: an output must be a file of its own");
    }
    if (!remark.empty()) std::cerr << "note: " << remark << "\n";
    if (!cube.note().empty()) std::cerr << "note: " << cube.note() << "\n";
    Whole data(std::filesystem::path(header).replace_extension(".img"));
    const std::size_t width = width_of(card);
    std::optional<Whole> confidence;
    if (!sure.empty()) confidence.emplace(std::filesystem::path(sure).replace_extension(".img"));
    std::vector<char> bytes(static_cast<std::size_t>(cube.samples()) * width);
    for (std::int64_t number = 0; number < cube.lines(); ++number) {
        const MapLine line = classifier.line(number);
        const std::vector<std::int32_t>& classes = line.classes;
        for (std::size_t sample = 0; sample < classes.size(); ++sample)
            for (std::size_t byte = 0; byte < width; ++byte)  // little endian, whatever the machine
                bytes[sample * width + byte] =
                    static_cast<char>(static_cast<std::uint32_t>(classes[sample]) >> (8 * byte));
        data.file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (!data.file)
            throw Error("map: cannot write line " + std::to_string(number) + ": is the disk full?");
        if (!confidence) continue;
        for (const float value : line.confidence) {
            const auto bits = std::bit_cast<std::uint32_t>(value);
            for (int shift = 0; shift < 32; shift += 8)
                confidence->file.put(static_cast<char>(bits >> shift & 0xFF));
        }
        if (!confidence->file)
            throw Error("--confidence: cannot write line " + std::to_string(number) +
                        ": is the disk full?");
    }
    if (confidence) {
        std::filesystem::remove(sure);
        confidence->keep();
        Whole described(sure);
        write_confidence_header(described.file, cube);
        described.keep();
    }
    std::filesystem::remove(header);  // an earlier map's would speak of these data
    data.keep();
    // The header comes last: where there is one, the data beside it are whole.
    Whole text(header);
    write_header(text.file, card, cube);
    text.keep();
    std::cout << cube.lines() << " lines of " << cube.samples()
              << " pixels classified: " << options.map << "\n";
}

}  // namespace
}  // namespace onboard

int main(int count, char** arguments) {
    try {
        const std::vector<std::string> words(arguments + 1, arguments + count);
        if (std::any_of(words.begin(), words.end(),
                        [](const std::string& word) { return word == "--help" || word == "-h"; })) {
            std::cout << onboard::help;
            return 0;
        }
        const onboard::Options options = onboard::parse(words);
        if (options.delta.empty()) {
            onboard::run(options);
        } else {
            onboard::update_model(options.delta, options.model, options.map);
        }
    } catch (const std::exception& error) {
        std::string text = error.what();
        for (char& letter :
             text)  // what a file says must stay one line, and not speak to the terminal
            if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = ' ';
        std::cerr << "error: " << text << "\n";
        return 2;
    }
    return 0;
}

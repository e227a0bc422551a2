// hytas-onboard: classifies an ENVI cube line by line, as a push-broom sensor delivers it, with an
// exported scene graph; or updates a model by a delta.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "classifier.hpp"
#include "delta.hpp"
#include "envi.hpp"
#include "error.hpp"
#include "map_writer.hpp"
#include "model_file.hpp"
#include "ort.hpp"
#include "sha256.hpp"
#include "stop.hpp"
#include "value_range.hpp"

namespace onboard {
namespace {

// Each takes memory, and a typo must not exhaust it.
constexpr int most_threads = 1024;
// So often the model's weights are checked in memory, and the map is synced to the disk.
constexpr std::int64_t lines_a_check = 16;
constexpr std::chrono::seconds time_a_sync{5};

constexpr const char* usage =
    "usage: hytas-onboard MODEL.onnx CUBE.hdr MAP.hdr [--library libonnxruntime.so] [--threads N]\n"
    "       [--smooth guided|none] [--unknown SHARE] [--confidence FILE.hdr] [--strict]\n"
    "       hytas-onboard --update DELTA MODEL.onnx NEW.onnx\n";

constexpr const char* help =
    "\nClassifies an ENVI cube line by line with a scene graph (hytas export RUN --formats "
    "onnx-scene).\n"
    "A run that was stopped goes on where it was if the same command is given again.\n\n"
    "  MODEL.onnx   the scene graph\n"
    "  CUBE.hdr     the header of the cube; the data lie next to it\n"
    "  MAP.hdr      the header of the map to write; its data get the ending .img\n"
    "  --library    onnxruntime's library (default: libonnxruntime.so.1)\n"
    "  --threads    processor threads, 1 to 1024 (default: 1)\n"
    "  --smooth     guided removes speckle from the map, none does not (default: the model's)\n"
    "  --unknown    class 0 for ground of no class of the model: the share of held-out pixels,\n"
    "               0.001 to 0.5, that would get it as well\n"
    "  --confidence the header of a raster for the probability of each pixel's class\n"
    "  --strict     refuse a cube without wavelengths, or with other values than the training had\n"
    "  --update     write the model file NEW.onnx that a file of `hytas update make` makes of "
    "MODEL.onnx\n";

struct Options {
    std::string model, cube, map, library = "libonnxruntime.so.1", smooth, confidence;
    std::string delta;  // of --update; the cube is then empty, and the map is the new model
    std::optional<double> unknown;
    int threads = 1;
    bool strict = false;
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
        if (argument == "--strict") {
            options.strict = true;
            continue;
        }
        const bool known = argument == "--library" || argument == "--threads" ||
                           argument == "--smooth" || argument == "--confidence" ||
                           argument == "--update" || argument == "--unknown";
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
        } else if (argument == "--unknown") {
            char* end = nullptr;
            options.unknown = std::strtod(value.c_str(), &end);
            if (value.empty() || *end != '\0')
                throw Error("--unknown: " + value + " must be 0.001 to 0.5");
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

// What decides the bytes of a map's lines, as one text without end of line.
std::string identity_of(const Options& options, const ModelFile& file, const SceneModel& model,
                        const EnviCube& cube, bool smooth) {
    std::ostringstream text;
    text << "hytas-onboard lines 1, model " << file.metadata("hytas.sha256").value_or("")
         << ", onnxruntime " << model.version() << ", threads " << options.threads << ", cube "
         << std::filesystem::absolute(cube.data()).string() << " written "
         << std::filesystem::last_write_time(cube.data()).time_since_epoch().count() << " header ";
    for (const auto& [name, value] : cube.fields()) text << name << "=" << value << "\n";
    if (options.unknown) text << ", unknown " << std::setprecision(17) << *options.unknown;
    text << (smooth ? ", smoothed" : "") << (options.confidence.empty() ? "" : ", confidence");
    Sha256 digest;
    digest.add(text.str());
    return digest.finish();
}

// Say what is doubtful about a cube, or refuse it.
void check_scene(const Options& options, const Card& card, EnviCube& cube) {
    const std::string range = range_doubt(card, cube), sensor = wavelength_doubt(card, cube);
    if (options.strict && !sensor.empty()) throw Error("--strict: the cube has " + sensor);
    if (options.strict && !range.empty()) throw Error("--strict: the cube has " + range);
    if (!range.empty()) std::cerr << "note: the cube has " << range << "\n";
}

// Classify the lines that are not there yet.
void classify(Classifier& classifier, MapWriter& writer, const EnviCube& cube) {
    using Clock = std::chrono::steady_clock;
    std::int64_t checked = writer.lines();
    classifier.begin(checked);
    Clock::time_point synced = Clock::now();
    while (writer.lines() < cube.lines()) {
        writer.add(classifier.line(writer.lines()));
        const std::int64_t lines = writer.lines();
        if (lines % lines_a_check == 0 || lines == cube.lines()) {
            if (!classifier.unchanged()) {
                writer.cut(checked);
                writer.leave();
                throw Error("model: its weights changed in memory between lines " +
                            std::to_string(checked) + " and " + std::to_string(lines) +
                            "; the lines before are kept, and the same command goes on there");
            }
            checked = lines;
        }
        if (const int signal = stop_signal(); signal != 0 && lines < cube.lines()) {
            writer.leave();
            throw Stopped(std::to_string(lines) + " of " + std::to_string(cube.lines()) +
                          " lines are kept; the same command goes on there");
        }
        if (Clock::now() - synced > time_a_sync) {
            writer.sync();
            synced = Clock::now();
        }
    }
}

void run(const Options& options) {
    std::optional<ModelFile> file(options.model);
    const Card card(*file);
    EnviCube cube(options.cube);
    const SceneModel model(options.library, options.model, file->bytes, options.threads);
    const bool smooth = options.smooth.empty() ? card.smooth : options.smooth == "guided";
    const std::string identity = identity_of(options, *file, model, cube, smooth);
    file.reset();  // onnxruntime has its own copy, and memory is short on board
    Classifier classifier(model, card, cube, smooth, options.unknown);
    const std::filesystem::path header(options.map), sure(options.confidence);
    check_apart(header, options, cube);
    if (!sure.empty()) {
        check_apart(sure, options, cube);
        if (same_file(sure, header))
            throw Error("--confidence: " + sure.string() +
                        " is also the map: an output must be a file of its own");
    }
    if (!cube.note().empty()) std::cerr << "note: " << cube.note() << "\n";
    check_scene(options, card, cube);
    MapWriter writer(header, sure, card, cube, identity);
    if (writer.lines() > 0)
        std::cerr << "note: goes on behind line " << writer.lines() << " of an earlier run\n";
    classify(classifier, writer, cube);
    writer.finish();
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
            std::cout << onboard::usage << onboard::help;
            return 0;
        }
        const onboard::Options options = onboard::parse(words);
        onboard::watch_for_stop();
        if (options.delta.empty()) {
            onboard::run(options);
        } else {
            onboard::update_model(options.delta, options.model, options.map);
        }
    } catch (const onboard::Stopped& stopped) {
        std::cerr << "note: stopped: " << stopped.what() << "\n";
        return 128 + onboard::stop_signal();
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

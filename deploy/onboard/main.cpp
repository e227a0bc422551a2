// hytas-onboard: map an ENVI cube line by line with an exported scene graph; or update a
// model.

#include <getopt.h>

#include <charconv>
#include <csignal>
#include <hytas/onboard.hpp>
#include <iostream>

namespace {

using namespace hytas::onboard;

constexpr const char* usage =
    "usage: hytas-onboard MODEL.onnx CUBE.hdr MAP.hdr [--library libonnxruntime.so] [--threads N]\n"
    "       [--smooth guided|none] [--unknown SHARE] [--confidence FILE.hdr] [--strict] [--json]\n"
    "       hytas-onboard --update DELTA MODEL.onnx NEW.onnx [--json]\n";
constexpr const char* help =
    "\nMaps an ENVI cube line by line with a scene graph (hytas export RUN --formats onnx-scene):\n"
    "its classes, or its values as a raster of float32 with a band for each target.\n"
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
    "  --json       one line of JSON on standard output: status, its name, message and notes\n"
    "  --update     write the model file NEW.onnx that a file of `hytas update make` makes of "
    "MODEL.onnx\n";

volatile std::sig_atomic_t signal_number = 0;

[[noreturn]] void refuse(const std::string& message) { throw Error(Status::bad_argument, message); }

template <typename Value>
Value number_of(const std::string& option, const std::string& text, const char* rule) {
    Value value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        refuse(option + ": " + text + " must be " + rule);
    return value;
}

struct Options : CubeJob {
    bool json = false, help = false;
    std::string delta;

    void read(int count, char** words) {
        static constexpr option known[] = {
            {"library", 1, nullptr, 'l'}, {"threads", 1, nullptr, 't'},
            {"smooth", 1, nullptr, 'm'},  {"unknown", 1, nullptr, 'u'},
            {"strict", 0, nullptr, 's'},  {"confidence", 1, nullptr, 'c'},
            {"json", 0, nullptr, 'j'},    {"update", 1, nullptr, 'd'},
            {"help", 0, nullptr, 'h'},    {nullptr, 0, nullptr, 0}};
        opterr = 0;
        for (int letter; (letter = getopt_long(count, words, ":h", known, nullptr)) != -1;) {
            const std::string value = optarg == nullptr ? "" : optarg;
            switch (letter) {
                case 'l': library = value; break;
                case 't': threads = number_of<int>("--threads", value, "1 to 1024"); break;
                case 'm':
                    if (value != "guided" && value != "none")
                        refuse("--smooth: " + value + " must be guided or none");
                    smooth = value == "guided";
                    break;
                case 'u': unknown = number_of<double>("--unknown", value, "0.001 to 0.5"); break;
                case 's': strict = true; break;
                case 'c': confidence = value; break;
                case 'j': break;  // known already: other arguments may be refused
                case 'd': delta = value; break;
                case 'h': help = true; break;
                case ':': refuse(std::string(words[optind - 1]) + " needs a value; " + usage);
                default: refuse("no option " + std::string(words[optind - 1]) + "; " + usage);
            }
        }
        const std::vector<std::string> files(words + optind, words + count);
        if (help) return;
        if (!delta.empty() && files.size() != 2)
            refuse("--update: needs DELTA, the old model and the new one");
        if (delta.empty() && files.size() != 3) refuse(usage);
        model = files[0], cube = files[1], map = files.back();
    }
};

}  // namespace

int main(int count, char** words) {
    Options options;
    std::vector<std::string> notes;
    Numbers numbers;
    const auto end = [&](Status status, const std::string& message) {
        const bool is_ok = status == Status::ok, is_stopped = status == Status::stopped;
        if (options.json)
            std::cout << telemetry(status, message, notes, numbers) << "\n";
        else if (is_ok)
            std::cout << message << "\n";
        else
            std::cerr << (is_stopped ? "note: " : "error: ") << one_line(message) << "\n";
        return is_ok ? 0 : is_stopped ? 128 + signal_number : 2;
    };
    for (int at = 1; at < count; ++at) options.json |= std::string(words[at]) == "--json";
    try {
        options.read(count, words);
        if (options.help) {
            std::cout << usage << help;
            return 0;
        }
        struct sigaction action{};  // ends the pass after a line; a second one ends it at once
        action.sa_handler = [](int number) { signal_number = number; };
        action.sa_flags = SA_RESETHAND;
        for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
        if (!options.delta.empty()) {
            const std::size_t bytes = update_model(options.delta, options.model, options.map);
            return end(Status::ok, std::to_string(bytes) +
                                       " bytes written, checked by SHA-256: " + options.map);
        }
        CubePass pass(options);
        notes = pass.notes();
        numbers = {{"memory", pass.memory()}, {"lines", pass.lines()}, {"samples", pass.samples()}};
        if (!options.json) {
            for (const std::string& note : notes) std::cerr << "note: " << one_line(note) << "\n";
            std::cout << pass.memory() << " bytes of memory for the pass, without onnxruntime's\n"
                      << std::flush;
        }
        pass.run([] { return signal_number != 0; });
        return end(Status::ok, std::to_string(pass.lines()) + " lines of " +
                                   std::to_string(pass.samples()) +
                                   " pixels mapped: " + options.map);
    } catch (const Error& error) {
        return end(error.status, error.what());
    } catch (const std::exception& error) {
        return end(Status::failed, error.what());
    }
}

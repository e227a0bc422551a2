// hytas-onboard: classify an ENVI cube line by line with an exported scene graph; or update a
// model.

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <hytas/json.hpp>
#include <hytas/onboard.hpp>
#include <iostream>

#include "model_file.hpp"

namespace {

using hytas::Json;
using hytas::onboard::Error;
using hytas::onboard::Status;

constexpr const char* usage =
    "usage: hytas-onboard MODEL.onnx CUBE.hdr MAP.hdr [--library libonnxruntime.so] [--threads N]\n"
    "       [--smooth guided|none] [--unknown SHARE] [--confidence FILE.hdr] [--strict] [--json]\n"
    "       hytas-onboard --update DELTA MODEL.onnx NEW.onnx [--json]\n";

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
    "  --json       one line of JSON on standard output: status, its name, message and notes\n"
    "  --update     write the model file NEW.onnx that a file of `hytas update make` makes of "
    "MODEL.onnx\n";

struct Options : hytas::onboard::CubeJob {
    std::string delta;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(Status::bad_argument, message); }

template <typename Value>
Value number_of(const std::string& option, const std::string& text, const char* rule) {
    Value value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        refuse(option + ": " + text + " must be " + rule);
    return value;
}

std::string header_of(const std::string& argument, const std::string& path) {
    if (!path.ends_with(".hdr")) refuse(argument + ": " + path + " must end in .hdr");
    return path;
}

Options parse(std::vector<std::string> words) {
    Options options;
    std::vector<std::string> files;
    for (auto word = words.begin(); word != words.end(); ++word) {
        const std::string& name = *word;
        const bool is_flag = name == "--strict" || name == "--json";
        static constexpr const char* known[] = {"--library", "--threads",    "--smooth",
                                                "--unknown", "--confidence", "--update"};
        if (!name.starts_with("--")) files.push_back(name);
        options.strict |= name == "--strict";
        if (!name.starts_with("--") || is_flag) continue;
        if (std::find(std::begin(known), std::end(known), name) == std::end(known))
            refuse("no option " + name + "; " + usage);
        if (++word == words.end()) refuse(name + " needs a value; " + usage);
        const std::string& value = *word;
        if (name == "--library") options.library = value;
        if (name == "--update") options.delta = value;
        if (name == "--confidence") options.confidence = header_of(name, value);
        if (name == "--threads") options.threads = number_of<int>(name, value, "1 to 1024");
        if (name == "--unknown") options.unknown = number_of<double>(name, value, "0.001 to 0.5");
        if (name != "--smooth") continue;
        if (value != "guided" && value != "none")
            refuse("--smooth: " + value + " must be guided or none");
        options.smooth = value == "guided";
    }
    if (!options.delta.empty() && files.size() != 2)
        refuse("--update: needs DELTA, the old model and the new one");
    if (options.delta.empty() && files.size() != 3) refuse(usage);
    options.model = files[0];
    options.map = files.back();
    if (options.delta.empty()) {
        options.cube = files[1];
        header_of("map", options.map);
    }
    return options;
}

volatile std::sig_atomic_t signal_number = 0;

// SIGTERM and SIGINT end the pass after the line at work; a second one ends the program at once.
void watch_for_stop() {
    struct sigaction action{};
    action.sa_handler = [](int number) { signal_number = number; };
    action.sa_flags = SA_RESETHAND;
    for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

// What a file says must stay one line of UTF-8, and not speak to the terminal.
std::string one_line(std::string text) {
    const bool is_text = hytas::onboard::is_utf8(text);
    for (char& letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte == 0x7F) letter = ' ';
        if (byte >= 0x80 && !is_text) letter = '?';
    }
    return text;
}

class Report {
  public:
    explicit Report(bool json) : json_(json) {}

    void note(const std::string& text) {
        notes_.push_back(Json::string(one_line(text)));
        if (!json_) std::cerr << "note: " << notes_.back().text() << "\n";
    }
    void fact(const std::string& name, std::int64_t value) {
        facts_.emplace_back(name, Json::number(std::to_string(value)));
    }
    void say(const std::string& text) const {
        if (!json_) std::cout << text << "\n" << std::flush;
    }
    int end(Status status, const std::string& message) {
        const bool is_stopped = status == Status::stopped;
        if (json_) {
            Json::Members members{
                {"status", Json::number(std::to_string(static_cast<int>(status)))},
                {"name", Json::string(hytas::onboard::name_of(status))},
                {"message", Json::string(one_line(message))},
                {"notes", Json::array(notes_)}};
            members.insert(members.end(), facts_.begin(), facts_.end());
            std::cout << Json::object(members).dump() << "\n";
        } else if (status == Status::ok) {
            std::cout << message << "\n";
        } else {
            std::cerr << (is_stopped ? "note: " : "error: ") << one_line(message) << "\n";
        }
        return status == Status::ok ? 0 : is_stopped ? 128 + signal_number : 2;
    }

  private:
    bool json_;
    std::vector<Json> notes_;
    Json::Members facts_;
};

std::string run(const Options& options, Report& report) {
    if (!options.delta.empty()) {
        const std::size_t bytes =
            hytas::onboard::update_model(options.delta, options.model, options.map);
        return std::to_string(bytes) + " bytes written, checked by SHA-256: " + options.map;
    }
    hytas::onboard::CubePass pass(options);
    for (const std::string& note : pass.notes()) report.note(note);
    report.say(std::to_string(pass.memory()) +
               " bytes of memory for the pass, without onnxruntime's");
    report.fact("memory", static_cast<std::int64_t>(pass.memory()));
    report.fact("lines", pass.lines());
    report.fact("samples", pass.samples());
    pass.run([] { return signal_number != 0; });
    return std::to_string(pass.lines()) + " lines of " + std::to_string(pass.samples()) +
           " pixels classified: " + options.map;
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    const auto has = [&](const char* word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    Report report(has("--json"));
    try {
        if (has("--help") || has("-h")) {
            std::cout << usage << help;
            return 0;
        }
        const Options options = parse(words);
        watch_for_stop();
        return report.end(Status::ok, run(options, report));
    } catch (const Error& error) {
        return report.end(error.status, error.what());
    } catch (const std::exception& error) {
        return report.end(Status::failed, error.what());
    }
}

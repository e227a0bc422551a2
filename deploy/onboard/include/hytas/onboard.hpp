#pragma once
// Map the lines of a push-broom sensor with an exported scene graph of hytas: classes, or values.

#include <hytas/onboard_status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hytas::onboard {

enum class Status {
#define HYTAS_ONBOARD_NUMBER(number, name, meaning) name = (number),
    HYTAS_ONBOARD_STATUSES(HYTAS_ONBOARD_NUMBER)
#undef HYTAS_ONBOARD_NUMBER
};

[[nodiscard]] const char* name_of(Status status);

// A text without control characters, as one line of UTF-8: it may come from a file.
[[nodiscard]] std::string one_line(std::string text);

using Numbers = std::vector<std::pair<std::string, std::uint64_t>>;  // by name

// One line of JSON for telemetry: a status with its name, a message, notes, and further numbers.
[[nodiscard]] std::string telemetry(Status status, const std::string& message,
                                    const std::vector<std::string>& notes = {},
                                    const Numbers& numbers = {});

// Bad input or a failing device; what() is one line for the user.
struct Error : std::runtime_error {
    Error(Status why, const std::string& message) : std::runtime_error(message), status(why) {}
    Status status;
};

// What the sensor delivers.
struct Sensor {
    std::int64_t samples = 0;  // pixels of a line
    std::int64_t bands = 0;    // 0: those of the model
    std::string type = {};     // of a value, as numpy names it; empty: that of the model
    std::vector<double> wavelengths = {};  // of the bands in nm; empty: unknown
    std::optional<double> nodata = {};     // the value that means no data; without it the model's
};

struct Settings {
    std::string library = "libonnxruntime.so.1";  // onnxruntime's
    int threads = 1;
    std::optional<bool> smooth = {};     // by the guided filter; without it as the model says
    std::optional<double> unknown = {};  // class 0 for the ground that this share of held-out
                                         // pixels is less like the classes than, .001 to .5
};

// A line of the map. The spans hold until the next call of the predictor.
struct MapLine {
    std::int64_t number;                    // from 0
    std::span<const std::int32_t> classes;  // (samples) class ids; 0: no data or unknown ground
    std::span<const float> confidence;      // (samples) probabilities of the classes
    // In place of both, of a model of values: (samples, targets) in units; NaN: no data.
    std::span<const float> values = {};
};

// All memory is allocated by the constructor: `push` and `finish` allocate none, but for what
// onnxruntime takes while it runs the network, and for the text of an Error.
class Predictor {
  public:
    // `model` is the file of a scene graph. Throws Error.
    Predictor(const std::string& model, const Sensor& sensor, const Settings& settings = {});
    ~Predictor();
    Predictor(Predictor&&) noexcept;

    // The next line of the sensor, (samples, bands) in this machine's byte order. Returns the line
    // of the map that is complete then, which is `delay` lines earlier; none at first. Throws
    // Error(line_size) for another number of bytes; the line can then be pushed again, or dropped.
    std::optional<MapLine> push(std::span<const std::byte> values);

    // A line that the sensor did not deliver: it has no data, and none for the lines around it.
    std::optional<MapLine> push_dropped();

    // After the last line: the rest of the map, a line a call, then none. Throws Error(too_small)
    // if fewer lines were pushed than the model's patch has.
    std::optional<MapLine> finish();

    // Begin the map with line `number`; returns the line of the sensor to push first. Only before
    // the first push.
    std::int64_t start_at(std::int64_t number);

    // Whether the model's predictions on a few reference pixels are unchanged. A bit of its weights
    // that flips in memory changes them.
    [[nodiscard]] bool weights_unchanged();

    [[nodiscard]] std::size_t line_bytes() const;  // of a line of the sensor
    [[nodiscard]] std::int64_t delay() const;      // lines pushed before the first line of the map
    [[nodiscard]] std::size_t memory()
        const;  // bytes allocated for the pass, without onnxruntime's
    [[nodiscard]] const std::vector<std::int64_t>& class_ids() const;
    [[nodiscard]] const std::vector<std::string>& names() const;  // of the classes, or targets
    [[nodiscard]] const std::vector<std::string>& units() const;  // of targets; empty for classes

    class Pass;
    [[nodiscard]] const Pass& pass() const { return *pass_; }

  private:
    std::unique_ptr<Pass> pass_;
};

struct CubeJob : Settings {
    std::string model, cube, map;  // the scene graph; headers (.hdr) of the cube and of the map
    std::string confidence;        // header of a raster of the probabilities; empty: none
    bool strict = false;           // refuse a cube without wavelengths or with unlikely values
};

// An ENVI cube to an ENVI map, of values by lines (BIL). A pass that was stopped continues at the
// last complete line.
class CubePass {
  public:
    explicit CubePass(const CubeJob& job);  // throws Error
    ~CubePass();

    [[nodiscard]] const std::vector<std::string>& notes() const;  // doubts about the cube
    [[nodiscard]] std::size_t memory() const;                     // bytes, as of Predictor
    [[nodiscard]] std::size_t lines() const;
    [[nodiscard]] std::size_t samples() const;

    // Map the lines that are not in the map yet. Throws Error(stopped) after a line for which
    // `is_stopped` is true.
    void run(const std::function<bool()>& is_stopped);

  private:
    class Files;
    std::unique_ptr<Files> files_;
};

// Write the model file `result` that a delta of `hytas update make` makes of `model`, completely or
// not at all; returns its bytes. Throws Error.
std::size_t update_model(const std::string& delta, const std::string& model,
                         const std::string& result);

}  // namespace hytas::onboard

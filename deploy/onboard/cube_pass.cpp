#include <array>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "envi.hpp"
#include "hytas/onboard.hpp"
#include "map_writer.hpp"
#include "predictor.hpp"
#include "sha256.hpp"
#include "value_range.hpp"

namespace hytas::onboard {
namespace {

// Intervals of checking the model's weights in memory, and of syncing the map to the disk.
constexpr std::int64_t lines_a_check = 16;
constexpr std::chrono::seconds time_a_sync{5};

bool same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
    std::error_code absent;
    return std::filesystem::equivalent(one, other, absent) ||
           std::filesystem::weakly_canonical(one) == std::filesystem::weakly_canonical(other);
}

// Refuse a map that would overwrite what it is made from.
void check_apart(const std::filesystem::path& header, const CubeJob& job, const EnviCube& cube) {
    for (const auto& file : {header, std::filesystem::path(header).replace_extension(".img")}) {
        const bool of_cube = same_file(file, cube.header()) || same_file(file, cube.data());
        if (of_cube || same_file(file, job.model))
            throw Error(Status::output_failed, "map: " + file.string() + " is also a file of the " +
                                                   (of_cube ? "cube" : "model") +
                                                   ": an output must be a file of its own");
        if (std::filesystem::is_directory(file))
            throw Error(Status::output_failed,
                        "map: " + file.string() + " is a folder; the name of a file is needed");
    }
}

const CubeJob& checked(const CubeJob& job, const EnviCube& cube, const Card& card) {
    for (const auto& [name, path] : {std::pair("map", &job.map), {"--confidence", &job.confidence}})
        if (!path->empty() && !path->ends_with(".hdr"))
            throw Error(Status::bad_argument, name + (": " + *path) + " must end in .hdr");
    if (std::min(cube.lines(), cube.samples()) < card.patch_size)
        throw Error(Status::too_small, "cube: " + std::to_string(cube.lines()) + " x " +
                                           std::to_string(cube.samples()) +
                                           " pixels are less than the model's patch of " +
                                           std::to_string(card.patch_size));
    check_apart(job.map, job, cube);
    if (job.confidence.empty()) return job;
    if (card.of_values())
        throw Error(Status::bad_argument, "--confidence: a model of values gives none");
    check_apart(job.confidence, job, cube);
    if (same_file(job.confidence, job.map))
        throw Error(Status::output_failed,
                    "--confidence: " + job.confidence +
                        " is also the map: an output must be a file of its own");
    return job;
}

// What decides the bytes of a map's lines, as one text without end of line.
std::string identity_of(const CubeJob& job, const Predictor::Pass& pass, const EnviCube& cube) {
    std::ostringstream text;
    text << "hytas-onboard lines 1, model " << pass.digest() << ", onnxruntime "
         << pass.runtime_version() << ", threads " << job.threads << ", cube "
         << std::filesystem::absolute(cube.data()).string() << " written "
         << std::filesystem::last_write_time(cube.data()).time_since_epoch().count() << " header ";
    for (const auto& [name, value] : cube.fields()) text << name << "=" << value << "\n";
    if (job.unknown) text << ", unknown " << std::setprecision(17) << *job.unknown;
    text << (pass.is_smoothed() ? ", smoothed" : "")
         << (job.confidence.empty() ? "" : ", confidence");
    return sha256({text.str()});
}

Sensor sensor_of(const EnviCube& cube) {
    return {.samples = cube.samples(),
            .bands = cube.bands(),
            .type = cube.type().name,
            .wavelengths = cube.wavelengths(),
            .nodata = cube.ignore()};
}

// What is doubtful about a cube; with `strict` it is refused.
std::vector<std::string> doubts(const Card& card, EnviCube& cube, bool strict) {
    std::vector<std::string> notes;
    if (!cube.note().empty()) notes.push_back(cube.note());
    const std::string range = range_doubt(card, cube), sensor = wavelength_doubt(card, cube);
    if (strict && !sensor.empty())
        throw Error(Status::sensor_mismatch, "--strict: the cube has " + sensor);
    if (strict && !range.empty())
        throw Error(Status::value_range, "--strict: the cube has " + range);
    if (!range.empty()) notes.push_back("the cube has " + range);
    return notes;
}

}  // namespace

class CubePass::Files {
  public:
    explicit Files(const CubeJob& job)
        : cube_(job.cube),
          predictor_(job.model, sensor_of(cube_), job),
          notes_(doubts(card(), cube_, job.strict)),
          line_(cube_.line_bytes()),
          writer_(checked(job, cube_, card()).map, job.confidence, card(), cube_,
                  identity_of(job, predictor_.pass(), cube_)) {
        if (writer_.lines() > 0)
            notes_.push_back("goes on behind line " + std::to_string(writer_.lines()) +
                             " of an earlier run");
    }

    void run(const std::function<bool()>& is_stopped);

    [[nodiscard]] const EnviCube& cube() const { return cube_; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    [[nodiscard]] std::size_t memory() const {
        return predictor_.memory() + 2 * line_.size() + writer_.memory();
    }

  private:
    [[nodiscard]] const Card& card() const { return predictor_.pass().card(); }
    void check_weights(std::int64_t& checked_lines);

    EnviCube cube_;
    Predictor predictor_;
    std::vector<std::string> notes_;
    std::vector<char> line_;
    MapWriter writer_;
};

void CubePass::Files::run(const std::function<bool()>& is_stopped) {
    using Clock = std::chrono::steady_clock;
    std::int64_t checked_lines = writer_.lines(), number = predictor_.start_at(checked_lines);
    Clock::time_point synced = Clock::now();
    while (writer_.lines() < cube_.lines()) {
        std::optional<MapLine> line;
        if (number < cube_.lines()) {
            cube_.read(number++, line_);
            line = predictor_.push(std::as_bytes(std::span(line_)));
        } else {
            line = predictor_.finish();
        }
        if (!line) continue;
        writer_.add(*line);
        const std::int64_t lines = writer_.lines();
        if (lines % lines_a_check == 0 || lines == cube_.lines()) check_weights(checked_lines);
        if (lines < cube_.lines() && is_stopped()) {
            writer_.leave();
            throw Error(Status::stopped, "stopped: " + std::to_string(lines) + " of " +
                                             std::to_string(cube_.lines()) +
                                             " lines are kept; the same command goes on there");
        }
        if (Clock::now() - synced > time_a_sync) {
            writer_.sync();
            synced = Clock::now();
        }
    }
    writer_.finish();
}

void CubePass::Files::check_weights(std::int64_t& checked_lines) {
    const std::int64_t lines = writer_.lines();
    if (!predictor_.weights_unchanged()) {
        writer_.cut(checked_lines);
        writer_.leave();
        throw Error(Status::weights_changed,
                    "model: its weights changed in memory between lines " +
                        std::to_string(checked_lines) + " and " + std::to_string(lines) +
                        "; the lines before are kept, and the same command goes on there");
    }
    checked_lines = lines;
}

CubePass::CubePass(const CubeJob& job) : files_(std::make_unique<Files>(job)) {}
CubePass::~CubePass() = default;

void CubePass::run(const std::function<bool()>& is_stopped) { files_->run(is_stopped); }
const std::vector<std::string>& CubePass::notes() const { return files_->notes(); }
std::size_t CubePass::memory() const { return files_->memory(); }
std::size_t CubePass::lines() const { return static_cast<std::size_t>(files_->cube().lines()); }
std::size_t CubePass::samples() const { return static_cast<std::size_t>(files_->cube().samples()); }

}  // namespace hytas::onboard

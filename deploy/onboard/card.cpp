#include "card.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "metadata.hpp"
#include "values.hpp"

namespace hytas::onboard {
namespace {

bool are_finite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](double value) { return std::isfinite(value); });
}

bool fits(const ElementType& type, double number) {
    return with_type(type, [&](auto value) { return holds<decltype(value)>(number); });
}

}  // namespace

Card::Card(const SceneModel& model) {
    if (const std::string format = property(model, "format"); format != card_format)
        throw Error(Status::model_unsupported, "model: is of hytas format " + format +
                                                   ", this program reads format " +
                                                   std::string(card_format));
    if (const std::string graph = property(model, "graph"); graph != "scene")
        throw Error(Status::model_unsupported,
                    "model: is a " + graph +
                        " graph; this program takes the scene graph (hytas export --formats "
                        "onnx-scene)");
    if (model.metadata("hytas.scale_by").value_or("training") == "scene")
        throw Error(Status::model_unsupported,
                    "model: needs a scene that was scaled by its own pixels (--scale-by scene), "
                    "which a line-by-line program cannot do");
    read_bands(model);
    read_classes(model);
    read_targets(value_of(model, "targets"));
    read_preprocessing(value_of(model, "preprocessing"));
    read_guide(value_of(model, "smoothing"));
    if (const Json score = value_of(model, "unknown"); !score.is(Json::Kind::null))
        unknown.emplace(score, ids.size());
}

void Card::read_bands(const SceneModel& model) {
    patch_size = integer(value_of(model, "patch_size"), "patch_size");
    bands = integer(value_of(model, "bands"), "bands");
    if (patch_size < 1 || patch_size % 2 == 0)
        broken("patch_size is " + std::to_string(patch_size) + ", must be a positive odd number");
    if (bands < 1) broken("bands is " + std::to_string(bands) + ", must be at least 1");
    if (patch_size > most_patch_values || bands > most_patch_values ||
        patch_size * patch_size > most_patch_values / bands)
        broken("a patch has more than " + std::to_string(most_patch_values) + " values");
    type = &element_type_of_name(property(model, "dtype"));
    if (const Json mark = value_of(model, "nodata"); !mark.is(Json::Kind::null))
        nodata = number(mark, "nodata");
    if (nodata && !fits(*type, *nodata))
        broken("nodata is a number that no " + std::string(type->name) + " can be");
    kept.resize(static_cast<std::size_t>(bands));
    std::iota(kept.begin(), kept.end(), 0);
    if (model.metadata("hytas.kept_bands"))
        kept = integers(value_of(model, "kept_bands"), "kept_bands");
    if (std::any_of(kept.begin(), kept.end(),
                    [&](std::int64_t band) { return band < 0 || band >= bands; }))
        broken("kept_bands must be 0 to " + std::to_string(bands - 1));
    if (const Json values = value_of(model, "empty_values"); !values.is(Json::Kind::null)) {
        empty = numbers(values, "empty_values");
        if (empty.size() != static_cast<std::size_t>(bands) ||
            !std::all_of(empty.begin(), empty.end(),
                         [&](double value) { return fits(*type, value); }))
            broken("empty_values must be one number of type " + std::string(type->name) +
                   " for each band");
    }
    if (const Json centres = value_of(model, "wavelengths"); !centres.is(Json::Kind::null)) {
        wavelengths = numbers(centres, "wavelengths");
        if (wavelengths.size() != static_cast<std::size_t>(bands))
            broken(std::to_string(wavelengths.size()) + " wavelengths for " +
                   std::to_string(bands) + " bands");
    }
}

void Card::read_classes(const SceneModel& model) {
    ids = integers(value_of(model, "class_ids"), "class_ids");
    palette = integers(value_of(model, "palette"), "palette");
    names = texts(value_of(model, "class_names"), "class_names");
    if (ids.empty() || names.size() != ids.size() || palette.size() != 3 * ids.size())
        broken("class names, ids and colours differ in number");
    if (std::any_of(palette.begin(), palette.end(),
                    [](std::int64_t level) { return level < 0 || level > 255; }))
        broken("a colour is not three numbers from 0 to 255");
}

void Card::read_targets(const Json& targets) {
    if (targets.is(Json::Kind::null)) return;
    units = texts(member(targets, "units", "targets"), "targets");
    deviations = numbers(member(targets, "scale", "targets"), "targets");
    if (units.size() != ids.size() || deviations.size() != ids.size() || !are_finite(deviations))
        broken("targets: one unit and one finite scale needed for each target");
}

void Card::read_preprocessing(const Json& preprocessing) {
    const std::string key = "preprocessing";
    offset = numbers(member(preprocessing, "offset", key), key);
    scale = numbers(member(preprocessing, "scale", key), key);
    if (offset.size() != kept.size() || scale.size() != kept.size())
        broken("preprocessing: one offset and scale needed for each band");
    if (!are_finite(offset) || !are_finite(scale) ||
        !std::all_of(scale.begin(), scale.end(), [](double value) { return value > 0; }))
        broken("preprocessing: offset and scale must be finite, and scale above 0");
    if (const Json& farthest_value = member(preprocessing, "reach", key);
        !farthest_value.is(Json::Kind::null))
        reach = number(farthest_value, key);
    const Json& range = member(preprocessing, "usual", key);
    if (range.is(Json::Kind::null)) return;
    usual = ValueRange{.z = number(member(range, "z", key), key),
                       .low = number(member(range, "low", key), key),
                       .high = number(member(range, "high", key), key)};
}

void Card::read_guide(const Json& smoothing) {
    const std::string key = "smoothing";
    if (smoothing.is(Json::Kind::null)) return;
    const std::string& method = member(smoothing, "method", key).text();
    if (method != "guided" && method != "none") broken("smoothing must be guided or none");
    smooth = method == "guided";
    guide.emplace();
    guide->radius = integer(member(smoothing, "radius", key), key);
    guide->eps = number(member(smoothing, "eps", key), key);
    if (const Json* temperature = smoothing.find("temperature"))
        guide->temperature = number(*temperature, key);
    guide->directions = numbers(member(smoothing, "directions", key), key);
    guide->offset = numbers(member(smoothing, "offset", key), key);
    if (!(guide->temperature >= least_temperature && std::isfinite(guide->temperature)))
        broken("smoothing: the temperature must be finite and at least 0.01");
    if (guide->radius < 1 || guide->radius > most_radius)
        broken("smoothing: radius " + std::to_string(guide->radius) + " must be 1 to " +
               std::to_string(most_radius));
    if (guide->directions.size() != 3 * kept.size() || guide->offset.size() != 3 ||
        !are_finite(guide->directions) || !are_finite(guide->offset) ||
        !std::isfinite(guide->eps) || guide->eps <= 0)
        broken("smoothing: three directions, one number for each band, and a positive eps needed");
}

}  // namespace hytas::onboard

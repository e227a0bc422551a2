#include "ort.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "hytas/onboard.hpp"

namespace hytas::onboard {
namespace {

// The oldest release that runs the operator sets of hytas has this version of the interface.
constexpr std::uint32_t interface_version = 17;

constexpr std::array types{
    ElementType{"uint8", 2, 1, 1},    ElementType{"int16", 5, 2, 2},
    ElementType{"int32", 6, 3, 4},    ElementType{"float32", 1, 4, 4},
    ElementType{"float64", 11, 5, 8}, ElementType{"uint16", 4, 12, 2},
    ElementType{"uint32", 12, 13, 4}, ElementType{"int64", 7, 14, 8},
    ElementType{"uint64", 13, 15, 8},
};

Handle<OrtSession> open_session(const Api& api, const OrtEnv* environment, const std::string& bytes,
                                int threads) {
    const auto options = api.make(api->ReleaseSessionOptions, api->CreateSessionOptions);
    api.check(api->SetIntraOpNumThreads(options.get(), threads));
    api.check(api->SetSessionLogSeverityLevel(options.get(), ORT_LOGGING_LEVEL_FATAL));
    // Rows are all of one size, and memory kept for the largest moment of each operator is memory
    // lost on a small computer.
    api.check(api->DisableCpuMemArena(options.get()));
    // Threads that wait for work sleep: power is short on board, too.
    api.check(api->AddSessionConfigEntry(options.get(), "session.intra_op.allow_spinning", "0"));
    // Weights of 8 bits become floats when the file is opened, as in hytas/deploy/model.py.
    api.check(api->AddSessionConfigEntry(options.get(), "session.disable_quant_qdq", "1"));
    return api.make(api->ReleaseSession, api->CreateSessionFromArray, environment,
                    static_cast<const void*>(bytes.data()), bytes.size(),
                    static_cast<const OrtSessionOptions*>(options.get()));
}

}  // namespace

const ElementType& element_type_of_name(const std::string& numpy) {
    for (const ElementType& type : types)
        if (numpy == type.name) return type;
    throw Error(Status::model_unsupported,
                "model: takes values of type " + numpy + ", which an ENVI cube cannot hold");
}

const ElementType& element_type_of_envi(int code) {
    for (const ElementType& type : types)
        if (code == type.envi) return type;
    throw Error(Status::cube_unreadable,
                "cube: data type " + std::to_string(code) + " is not a real number type of ENVI");
}

Api::Api(const std::string& library) {
    // onnxruntime from 1.29 on would write figures of its use to the disk, and send them.
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);
    void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw Error(Status::runtime_error, "library: " + std::string(dlerror()));
    const auto base = reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(opened, "OrtGetApiBase"));
    if (base == nullptr)
        throw Error(Status::runtime_error,
                    "library: " + library + " is not onnxruntime: it has no OrtGetApiBase");
    version_ = base()->GetVersionString();
    api_ = base()->GetApi(interface_version);
    if (api_ == nullptr)
        throw Error(Status::runtime_error, "library: " + library + " is onnxruntime " + version_ +
                                               ", must be 1." + std::to_string(interface_version) +
                                               " or newer");
}

void Api::check(OrtStatus* status) const {
    if (status == nullptr) return;
    const Handle<OrtStatus> held(status, {api_->ReleaseStatus});
    std::string message = api_->GetErrorMessage(status);
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw Error(Status::runtime_error, "onnxruntime: " + message);
}

SceneModel::SceneModel(const std::string& library, const ModelFile& file, int threads)
    : api_(library),
      environment_(api_.make(api_->ReleaseEnv, api_->CreateEnv, ORT_LOGGING_LEVEL_FATAL, "hytas")) {
    try {
        session_ = open_session(api_, environment_.get(), file.bytes, threads);
    } catch (const Error& error) {
        throw Error(
            Status::model_unsupported,
            "model: " + file.path + " is not an ONNX model that runs here (" + error.what() + ")");
    }
    memory_ = api_.make(api_->ReleaseMemoryInfo, api_->CreateCpuMemoryInfo, OrtArenaAllocator,
                        OrtMemTypeDefault);
    api_.check(api_->GetAllocatorWithDefaultOptions(&allocator_));
    metadata_ = api_.make(api_->ReleaseModelMetadata, api_->SessionGetModelMetadata,
                          static_cast<const OrtSession*>(session_.get()));
    check_outputs();
}

std::string SceneModel::taken(char* text) const {
    const std::string copy = text;
    api_.check(api_->AllocatorFree(allocator_, text));
    return copy;
}

std::optional<std::string> SceneModel::metadata(const std::string& key) const {
    char* text = nullptr;
    api_.check(api_->ModelMetadataLookupCustomMetadataMap(metadata_.get(), allocator_, key.c_str(),
                                                          &text));
    return text == nullptr ? std::nullopt : std::optional(taken(text));
}

// The library writes them into memory of these types.
void SceneModel::check_outputs() const {
    std::size_t count = 0;
    api_.check(api_->SessionGetOutputCount(session_.get(), &count));
    for (std::size_t at = 0; at < count; ++at) {
        char* name = nullptr;
        api_.check(api_->SessionGetOutputName(session_.get(), at, allocator_, &name));
        const bool is_class = taken(name) == "classes";
        const auto type = api_.make(api_->ReleaseTypeInfo, api_->SessionGetOutputTypeInfo,
                                    static_cast<const OrtSession*>(session_.get()), at);
        const OrtTensorTypeAndShapeInfo* tensor = nullptr;
        ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        api_.check(api_->CastTypeInfoToTensorInfo(type.get(), &tensor));
        if (tensor != nullptr) api_.check(api_->GetTensorElementType(tensor, &element));
        if (element !=
            (is_class ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT))
            throw Error(Status::model_unsupported,
                        "model: its class ids are not of type int32, or other outputs not "
                        "float32: it was not written by `hytas export`");
    }
}

template <typename Value>
Handle<OrtValue> SceneModel::tensor(std::vector<Value>& memory,
                                    const std::vector<std::int64_t>& shape, int element) const {
    return api_.make(api_->ReleaseValue, api_->CreateTensorWithDataAsOrtValue,
                     static_cast<const OrtMemoryInfo*>(memory_.get()),
                     static_cast<void*>(memory.data()), memory.size() * sizeof(Value), shape.data(),
                     shape.size(), static_cast<ONNXTensorElementDataType>(element));
}

Call SceneModel::prepare(const Tile& tile, std::vector<std::int32_t>& classes,
                         std::vector<float>& values, const char* name) const {
    const std::int64_t samples = tile.columns - tile.rows + 1;
    std::vector<std::int64_t> shape{1, samples};
    if (std::string_view(name) != "confidence")
        shape.push_back(static_cast<std::int64_t>(values.size()) / samples);
    return {.tile = tensor(tile.data, {tile.rows, tile.columns, tile.bands}, tile.type->onnx),
            .classes = classes.empty()
                           ? Handle<OrtValue>(nullptr, {api_->ReleaseValue})
                           : tensor(classes, {1, samples}, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32),
            .values = tensor(values, shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT),
            .name = name};
}

void SceneModel::run(const Call& call) const {
    const std::array<const char*, 1> input_names{"tile"};
    const std::array<const char*, 2> output_names{"classes", call.name};
    const std::array<const OrtValue*, 1> inputs{call.tile.get()};
    std::array<OrtValue*, 2> outputs{call.classes.get(), call.values.get()};
    const std::size_t first = call.classes ? 0 : 1;
    api_.check(api_->Run(session_.get(), nullptr, input_names.data(), inputs.data(), inputs.size(),
                         &output_names[first], outputs.size() - first, &outputs[first]));
}

}  // namespace hytas::onboard

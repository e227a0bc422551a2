#include "ort.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "error.hpp"

namespace onboard {
namespace {

// Places in the table of onnxruntime's C interface, versions 1 and 2 of it.
enum Slot : std::size_t {
    get_error_message = 2,
    create_env = 3,
    create_session_from_array = 8,
    run_session = 9,
    create_session_options = 10,
    disable_cpu_mem_arena = 19,
    set_severity = 22,
    set_intra_op_threads = 24,
    create_tensor_with_data = 49,
    get_tensor_data = 51,
    get_element_type = 60,
    get_dimensions_count = 61,
    get_dimensions = 62,
    get_tensor_shape = 65,
    create_cpu_memory_info = 69,
    release_env = 92,
    release_status = 93,
    release_memory_info = 94,
    release_session = 95,
    release_value = 96,
    release_shape = 99,
    release_session_options = 100,
};

constexpr std::uint32_t interface_version = 2;
constexpr int log_fatal_only = 4;
constexpr int onnx_int32 = 6, onnx_float = 1;

struct ApiBase {
    void* const* (*get_api)(std::uint32_t version);
    const char* (*get_version)();
};

constexpr std::array types{
    ElementType{"uint8", 2, 1, 1},    ElementType{"int16", 5, 2, 2},
    ElementType{"int32", 6, 3, 4},    ElementType{"float32", 1, 4, 4},
    ElementType{"float64", 11, 5, 8}, ElementType{"uint16", 4, 12, 2},
    ElementType{"uint32", 12, 13, 4}, ElementType{"int64", 7, 14, 8},
    ElementType{"uint64", 13, 15, 8},
};

}  // namespace

const ElementType& element_type_of_name(const std::string& numpy) {
    for (const ElementType& type : types)
        if (numpy == type.name) return type;
    throw Error("model: takes values of type " + numpy + ", which an ENVI cube cannot hold");
}

const ElementType& element_type_of_envi(int code) {
    for (const ElementType& type : types)
        if (code == type.envi) return type;
    throw Error("cube: data type " + std::to_string(code) + " is not a real number type of ENVI");
}

template <typename... Arguments>
void SceneModel::release(std::size_t slot, Arguments... arguments) const {
    reinterpret_cast<void (*)(Arguments...)>(api_[slot])(arguments...);
}

template <typename... Arguments>
void SceneModel::call(std::size_t slot, Arguments... arguments) const {
    void* status = reinterpret_cast<void* (*)(Arguments...)>(api_[slot])(arguments...);
    if (status == nullptr) return;
    std::string message =
        reinterpret_cast<const char* (*)(const void*)>(api_[get_error_message])(status);
    release(release_status, status);
    for (char& letter : message)
        if (letter == '\n') letter = ' ';
    throw Error("onnxruntime: " + message);
}

SceneModel::SceneModel(const std::string& library, const std::string& name,
                       const std::string& bytes, int threads) {
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw Error("library: " + std::string(dlerror()));
    using GetBase = const ApiBase* (*)();
    const auto base = reinterpret_cast<GetBase>(dlsym(library_, "OrtGetApiBase"));
    if (base == nullptr)
        throw Error("library: " + library + " is not onnxruntime: it has no OrtGetApiBase");
    api_ = base()->get_api(interface_version);
    if (api_ == nullptr)
        throw Error("library: " + library + " no longer has version 2 of its interface");
    call(create_env, log_fatal_only, "hytas", &environment_);
    void* options = nullptr;
    call(create_session_options, &options);
    call(set_intra_op_threads, options, threads);
    call(set_severity, options, log_fatal_only);
    // Rows are all of one size, and memory kept for the largest moment of each operator is memory
    // lost on a small computer.
    call(disable_cpu_mem_arena, options);
    try {
        call(create_session_from_array, environment_, static_cast<const void*>(bytes.data()),
             bytes.size(), static_cast<const void*>(options), &session_);
    } catch (const Error& error) {
        release(release_session_options, options);
        throw Error("model: " + name + " is not an ONNX model that runs here (" + error.what() +
                    ")");
    }
    release(release_session_options, options);
    call(create_cpu_memory_info, 1, 0,
         &memory_);  // arena allocator, default memory: for tensors of our own
}

SceneModel::~SceneModel() {
    if (memory_ != nullptr) release(release_memory_info, memory_);
    if (session_ != nullptr) release(release_session, session_);
    if (environment_ != nullptr) release(release_env, environment_);
    // The library stays open: it runs code of its own when it is closed.
}

// What an output holds, if it is of the type `element`.
template <typename Value>
std::vector<Value> SceneModel::take(void* output, int element) const {
    void* data = nullptr;
    void* info = nullptr;
    std::size_t axes = 0;
    int type = 0;
    call(get_tensor_shape, static_cast<const void*>(output), &info);
    call(get_element_type, static_cast<const void*>(info), &type);
    if (type != element && element == onnx_int32)
        throw Error(
            "model: its class ids are not of type int32: it was not written by `hytas export`");
    if (type != element)
        throw Error(
            "model: its confidence is not of type float32: it was not written by `hytas export`");
    call(get_dimensions_count, static_cast<const void*>(info), &axes);
    std::vector<std::int64_t> sizes(axes);
    call(get_dimensions, static_cast<const void*>(info), sizes.data(), axes);
    release(release_shape, info);
    std::size_t count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
    call(get_tensor_data, output, &data);
    return std::vector<Value>(static_cast<const Value*>(data),
                              static_cast<const Value*>(data) + count);
}

std::vector<std::int32_t> SceneModel::run(const Tile& tile, const char* values,
                                          std::vector<float>& found) const {
    const std::array<std::int64_t, 3> shape{tile.rows, tile.columns, tile.bands};
    const std::size_t bytes =
        static_cast<std::size_t>(tile.rows * tile.columns * tile.bands) * tile.type->size;
    void* input = nullptr;
    call(create_tensor_with_data, static_cast<const void*>(memory_), const_cast<void*>(tile.data),
         bytes, shape.data(), shape.size(), tile.type->onnx, &input);
    const std::array<const char*, 1> input_names{"tile"};
    const std::array<const char*, 2> output_names{"classes", values};
    const std::array<const void*, 1> inputs{input};
    std::array<void*, 2> outputs{nullptr, nullptr};
    call(run_session, session_, static_cast<const void*>(nullptr), input_names.data(),
         inputs.data(), inputs.size(), output_names.data(), output_names.size(), outputs.data());
    std::vector<std::int32_t> classes = take<std::int32_t>(outputs[0], onnx_int32);
    found = take<float>(outputs[1], onnx_float);
    for (void* value : {input, outputs[0], outputs[1]}) release(release_value, value);
    return classes;
}

}  // namespace onboard

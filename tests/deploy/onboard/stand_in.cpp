// Stands in for onnxruntime's library where a processor has none, and where allocations are
// counted. The probabilities of a pixel are made of a checksum of its patch, by integers and one
// division. All class ids are that of the variable STAND_IN_CLASS: smoothed maps do not use them.
// A model of values gives these probabilities as well.

#include <onnxruntime_c_api.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct OrtValue {
    void* data;
    std::vector<std::int64_t> shape;
    std::size_t bytes;
};

namespace {

char object;  // stands for what has no state
std::string model;

template <typename Kind>
OrtStatus* give(Kind** made) {
    *made = reinterpret_cast<Kind*>(&object);
    return nullptr;
}

OrtStatus* run(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const* inputs,
               std::size_t, const char* const*, std::size_t count, OrtValue** outputs) noexcept {
    const OrtValue& tile = *inputs[0];
    const auto rows = static_cast<std::size_t>(tile.shape[0]),
               columns = static_cast<std::size_t>(tile.shape[1]), samples = columns - rows + 1;
    const std::size_t row = tile.bytes / rows, pixel = row / columns;
    const std::vector<std::int64_t>& shape = outputs[count - 1]->shape;
    const auto classes = static_cast<std::size_t>(shape.size() == 3 ? shape[2] : 1);
    auto* const ids = count > 1 ? static_cast<std::int32_t*>(outputs[0]->data) : nullptr;
    auto* const probabilities = static_cast<float*>(outputs[count - 1]->data);
    for (std::size_t sample = 0; sample < samples; ++sample) {
        std::uint64_t hash = 0xcbf29ce484222325;
        for (std::size_t line = 0; line < rows; ++line) {
            const auto* bytes = static_cast<const unsigned char*>(tile.data) + line * row;
            for (std::size_t at = 0; at < rows * pixel; ++at)
                hash = (hash ^ bytes[sample * pixel + at]) * 0x100000001b3;
        }
        std::uint64_t sum = 0;
        for (std::size_t kind = 0; kind < classes; ++kind) sum += 1 + (hash >> kind % 56 & 0xFF);
        for (std::size_t kind = 0; kind < classes; ++kind)
            probabilities[sample * classes + kind] =
                static_cast<float>(1 + (hash >> kind % 56 & 0xFF)) / static_cast<float>(sum);
        if (ids != nullptr) ids[sample] = std::atoi(std::getenv("STAND_IN_CLASS"));
    }
    return nullptr;
}

// The text of an entry of the model's metadata, by a search for the bytes that begin it.
OrtStatus* look_up(const OrtModelMetadata*, OrtAllocator*, const char* key, char** text) noexcept {
    const std::string name = key;
    const std::size_t found =
        model.find("\x0a" + std::string(1, static_cast<char>(name.size())) + name + "\x12");
    *text = nullptr;
    if (found == std::string::npos) return nullptr;
    std::size_t at = found + name.size() + 3, size = 0;
    for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(model[at++]);
        size |= static_cast<std::size_t>(byte & 0x7F) << shift;
        if (byte < 0x80) break;
    }
    *text = static_cast<char*>(std::calloc(size + 1, 1));
    std::memcpy(*text, &model[at], size);
    return nullptr;
}

OrtApi functions() {
    OrtApi api{};
    api.CreateEnv = [](OrtLoggingLevel, const char*, OrtEnv** made) noexcept { return give(made); };
    api.CreateSessionOptions = [](OrtSessionOptions** made) noexcept { return give(made); };
    api.SetIntraOpNumThreads = [](OrtSessionOptions*, int) noexcept -> OrtStatus* {
        return nullptr;
    };
    api.SetSessionLogSeverityLevel = [](OrtSessionOptions*, int) noexcept -> OrtStatus* {
        return nullptr;
    };
    api.DisableCpuMemArena = [](OrtSessionOptions*) noexcept -> OrtStatus* { return nullptr; };
    api.AddSessionConfigEntry = [](OrtSessionOptions*, const char*,
                                   const char*) noexcept -> OrtStatus* { return nullptr; };
    api.CreateSessionFromArray = [](const OrtEnv*, const void* bytes, std::size_t size,
                                    const OrtSessionOptions*, OrtSession** made) noexcept {
        model.assign(static_cast<const char*>(bytes), size);
        return give(made);
    };
    api.GetAllocatorWithDefaultOptions = [](OrtAllocator** made) noexcept { return give(made); };
    api.AllocatorFree = [](OrtAllocator*, void* memory) noexcept -> OrtStatus* {
        std::free(memory);
        return nullptr;
    };
    api.SessionGetModelMetadata = [](const OrtSession*, OrtModelMetadata** made) noexcept {
        return give(made);
    };
    api.ModelMetadataLookupCustomMetadataMap = look_up;
    api.SessionGetOutputCount = [](const OrtSession*, std::size_t* count) noexcept -> OrtStatus* {
        *count = 0;  // as many as are looked at
        return nullptr;
    };
    api.CreateCpuMemoryInfo = [](OrtAllocatorType, OrtMemType, OrtMemoryInfo** made) noexcept {
        return give(made);
    };
    api.CreateTensorWithDataAsOrtValue =
        [](const OrtMemoryInfo*, void* data, std::size_t bytes, const std::int64_t* shape,
           std::size_t axes, ONNXTensorElementDataType, OrtValue** made) noexcept -> OrtStatus* {
        *made = new OrtValue{data, {shape, shape + axes}, bytes};
        return nullptr;
    };
    api.Run = run;
    api.ReleaseEnv = [](OrtEnv*) noexcept {};
    api.ReleaseSessionOptions = [](OrtSessionOptions*) noexcept {};
    api.ReleaseSession = [](OrtSession*) noexcept {};
    api.ReleaseMemoryInfo = [](OrtMemoryInfo*) noexcept {};
    api.ReleaseModelMetadata = [](OrtModelMetadata*) noexcept {};
    api.ReleaseStatus = [](OrtStatus*) noexcept {};
    api.ReleaseValue = [](OrtValue* value) noexcept { delete value; };
    return api;
}

}  // namespace

extern "C" const OrtApiBase* OrtGetApiBase() {
    static const OrtApi api = functions();
    static const OrtApiBase base{
        .GetApi = [](std::uint32_t) noexcept -> const OrtApi* { return &api; },
        .GetVersionString = []() noexcept -> const char* { return "stand-in"; }};
    return &base;
}

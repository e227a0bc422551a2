#pragma once
// onnxruntime through its C interface, loaded when the program runs.

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "element_type.hpp"
#include "model_file.hpp"

namespace hytas::onboard {

struct Tile {
    std::vector<char>& data;
    const ElementType* type;
    std::int64_t rows, columns, bands;
};

// One thing that onnxruntime made; it is released with its handle.
template <typename Kind>
struct Release {
    void (*release)(Kind*);
    void operator()(Kind* one) const { release(one); }
};
template <typename Kind>
using Handle = std::unique_ptr<Kind, Release<Kind>>;

// The functions of a library. It stays open: onnxruntime runs code of its own when it is closed.
class Api {
  public:
    explicit Api(const std::string& library);

    const OrtApi* operator->() const { return api_; }
    [[nodiscard]] const std::string& version() const { return version_; }

    // Throws Error with the message of a call that failed.
    void check(OrtStatus* status) const;

    // What `call` makes of the arguments, by its last parameter.
    template <typename Kind, typename Call, typename... Arguments>
    [[nodiscard]] Handle<Kind> make(void (*release)(Kind*), Call call,
                                    Arguments... arguments) const {
        Kind* made = nullptr;
        check(call(arguments..., &made));
        return Handle<Kind>(made, {release});
    }

  private:
    const OrtApi* api_ = nullptr;
    std::string version_;
};

// A run of the model on values in the caller's memory, into the caller's memory.
struct Call {
    Handle<OrtValue> tile, classes, values;
    const char* name;  // of the output `values`
};

// A scene graph: a tile with its margin in, class ids or values out.
class SceneModel {
  public:
    // Throws Error, also for outputs of other types than those of a scene graph.
    SceneModel(const std::string& library, const ModelFile& file, int threads);

    // The text of an entry of the metadata, if there is one.
    [[nodiscard]] std::optional<std::string> metadata(const std::string& key) const;

    // The run that writes the class ids of one line, unless `classes` is empty, and the output
    // `name`: "confidence", or "probabilities" of all classes, or "values" of all targets. The
    // vectors keep their places and sizes.
    [[nodiscard]] Call prepare(const Tile& tile, std::vector<std::int32_t>& classes,
                               std::vector<float>& values, const char* name) const;
    void run(const Call& call) const;

    // The release of onnxruntime.
    [[nodiscard]] const std::string& version() const { return api_.version(); }

  private:
    void check_outputs() const;
    [[nodiscard]] std::string taken(char* text) const;  // a copy of a text of onnxruntime
    template <typename Value>
    [[nodiscard]] Handle<OrtValue> tensor(std::vector<Value>& memory,
                                          const std::vector<std::int64_t>& shape,
                                          int element) const;

    Api api_;
    Handle<OrtEnv> environment_;
    OrtAllocator* allocator_ = nullptr;
    Handle<OrtSession> session_;
    Handle<OrtModelMetadata> metadata_;
    Handle<OrtMemoryInfo> memory_;
};

}  // namespace hytas::onboard

/* Results of hytas-onboard, for telemetry: a number, its name and its meaning, in C and in C++.
   A number keeps its meaning in later versions. */
#ifndef HYTAS_ONBOARD_STATUS_H
#define HYTAS_ONBOARD_STATUS_H

#define HYTAS_ONBOARD_STATUSES(STATUS)                                                      \
    STATUS(0, ok, "all lines are classified, or the new model is written")                  \
    STATUS(1, stopped, "stopped by a signal; the same command continues")                   \
    STATUS(2, failed, "an error without a number of its own, such as no free memory")       \
    STATUS(3, bad_argument, "an argument or a setting cannot be used")                      \
    STATUS(4, runtime_error, "onnxruntime's library is missing, too old, or failed")        \
    STATUS(10, model_unreadable, "the model file is missing, or cannot be read")            \
    STATUS(11, model_damaged, "the model file is no ONNX file, or its checksum is wrong")   \
    STATUS(12, model_unsupported, "the model is not one that this program runs")            \
    STATUS(13, weights_changed, "the weights changed in memory during the pass")            \
    STATUS(20, cube_unreadable, "the cube's header or data are missing, or cannot be read") \
    STATUS(21, cube_size, "the data are shorter or longer than the header says")            \
    STATUS(22, sensor_mismatch, "bands, type or wavelengths are not those of the model")    \
    STATUS(23, too_small, "fewer lines or pixels than the model's patch")                   \
    STATUS(24, line_size, "a pushed line has another number of bytes than the sensor's")    \
    STATUS(25, value_range, "the values are unlike those of the training (--strict)")       \
    STATUS(30, delta_unreadable, "the delta file is missing, or cannot be read")            \
    STATUS(31, delta_damaged, "the delta is no delta of hytas, or its checksum is wrong")   \
    STATUS(32, delta_mismatch, "the delta is for another model file")                       \
    STATUS(40, output_failed, "an output cannot be written, or would overwrite an input")   \
    STATUS(41, output_locked, "another run writes the same output")

enum hytas_onboard_status {
#define HYTAS_ONBOARD_NUMBER(number, name, meaning) hytas_onboard_##name = number,
    HYTAS_ONBOARD_STATUSES(HYTAS_ONBOARD_NUMBER)
#undef HYTAS_ONBOARD_NUMBER
};

#endif

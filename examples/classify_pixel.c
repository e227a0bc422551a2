/* Classify pixels with the file that `hytas export RUN --formats c` wrote; its head has the sizes.
   cc -O2 -DTYPE=int16_t -DSIDE=7 -DBANDS=200 -DCLASSES=16 classify_pixel.c model.c -lm
   ./a.out < patches.raw        (raw patches of SIDE x SIDE x BANDS values, one after the other) */
#include <stdint.h>
#include <stdio.h>

extern const int hytas_class_ids[];
extern const char *const hytas_class_names[];
void hytas_model(const TYPE patches[restrict 1][SIDE][SIDE][BANDS], float found[restrict 1][CLASSES]);

int main(void) {
    static TYPE patch[1][SIDE][SIDE][BANDS];
    static float found[1][CLASSES];
    while (fread(patch, sizeof patch, 1, stdin) == 1) {
        int best = 0;
        hytas_model(patch, found);
        for (int i = 1; i < CLASSES; i++)
            if (found[0][i] > found[0][best]) best = i;
        printf("%d %s %.4f\n", hytas_class_ids[best], hytas_class_names[best], found[0][best]);
    }
    return 0;
}

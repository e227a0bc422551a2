/* Classify pixels with the files that `hytas export runs/ip --formats c` wrote.
   cc -O3 -DNAME=ip -include runs/ip/model.h classify_pixel.c runs/ip/model.c -lm
   ./a.out < patches.raw        (raw patches, one after the other) */
#include <stdio.h>

#define JOINED(name, word) name##_##word
#define JOIN(name, word) JOINED(name, word)
#define MODEL(word) JOIN(NAME, word)

static MODEL(patch) patch;
static float probabilities[MODEL(classes)], workspace[MODEL(workspace)];

int main(void) {
    while (fread(&patch, sizeof patch, 1, stdin) == 1) {
        int best = 0;
        MODEL(run)(&patch, probabilities, workspace);
        for (int i = 1; i < MODEL(classes); i++)
            if (probabilities[i] > probabilities[best]) best = i;
        printf("%d %s %.4f\n", MODEL(class_ids)[best], MODEL(class_names)[best], probabilities[best]);
    }
    return 0;
}
